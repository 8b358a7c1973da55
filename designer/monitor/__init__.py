"""Watching a run: its recording, the player that moves through it, the panels, the canvas, comparing."""
