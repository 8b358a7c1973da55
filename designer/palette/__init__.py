"""The palette: every operator by its family, and finding one by typing."""
