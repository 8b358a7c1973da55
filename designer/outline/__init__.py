"""The outline: every node as a list that centres it."""
