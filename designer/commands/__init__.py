"""What a person can do, as data: the menus, the tool bar, the shortcuts and the command palette are made from it."""
