"""The local algorithms, one file each: which of the released jobs of a track comes next (section 3.1)."""
