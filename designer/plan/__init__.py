"""The plan explorer: a workflow's physical plans, drawn, explained and asked for."""
