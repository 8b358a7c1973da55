"""The Papilio engine: everything that runs without a window."""

__version__ = "0.1.0"
