"""The ways to share the tracks among the jobs, one file each (section 3.2)."""
