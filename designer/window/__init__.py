"""The main window: tabs, docks, menus, and what holds them together."""
