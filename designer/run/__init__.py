"""The run bar and what it drives: a run of the open workflow, an attached one, a replayed one."""
