"""The panels, one file each: a module here with a `PANEL` is found by its name and gets a dock of its own."""
