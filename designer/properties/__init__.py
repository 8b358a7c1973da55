"""Properties: a form made from an operator's settings model, with the right editor for each setting."""
