"""A look at the data: sample rows of what is selected, computed by the engine process."""
