"""A session: files, recovery, templates, the store, exports, and what is remembered until next time."""
