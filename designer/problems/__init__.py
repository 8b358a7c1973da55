"""What is wrong with the workflow, as a list that leads to the place."""
