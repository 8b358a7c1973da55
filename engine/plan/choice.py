"""What a run may be asked for, beside the signature of a plan."""

from __future__ import annotations

BEST, NONE = "best", "none"
