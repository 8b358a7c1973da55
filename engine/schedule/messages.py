"""What the monitor and the units say to each other (scheduling, section 6, table 2)."""

from __future__ import annotations

from enum import StrEnum


class Message(StrEnum):
    """A message and what its receiver does."""

    RESUME = "resume"  # go on with the data
    STALL = "stall"  # stop for now; from a unit to the monitor: I have stopped
    END_OF_DATA = "end of data"  # this producer gives nothing more
    TERMINATE = "terminate"  # end; from a unit to the monitor: I have ended
    DUMMY_RESUME = "dummy resume"  # nothing could be picked: look at your flags again
