"""TPC-H to SSB as users of other Python tools write it. Each file runs alone, in that tool's own environment.

`python NAME_job.py DATA OUT PARTS` loads the five tables and says on its last line how long that took.
"""
