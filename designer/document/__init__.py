"""A workflow while it is being edited. No Qt here: every edit can be made, undone and tested without a window."""
