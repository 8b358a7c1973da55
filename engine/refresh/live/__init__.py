"""The streaming warehouse live: the one part of this room that talks to Spark and to the disk."""
