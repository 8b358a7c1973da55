"""Colours, style sheet and icons, light and dark."""
