"""The decision algorithms of the elastic paper's figures 3 to 9, one file for each stage. Pure."""
