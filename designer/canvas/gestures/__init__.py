"""What a person does with the mouse, one object each: it starts, moves, and ends or is cancelled."""

from designer.canvas.gestures.band import Band
from designer.canvas.gestures.base import Gesture
from designer.canvas.gestures.connect import Connect
from designer.canvas.gestures.move import Move
from designer.canvas.gestures.pan import Pan
from designer.canvas.gestures.resize import Resize

__all__ = ["Band", "Connect", "Gesture", "Move", "Pan", "Resize"]
