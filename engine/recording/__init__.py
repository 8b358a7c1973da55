"""A run as its event log tells it: read as it grows, and known at any moment. Pure: no Qt, no Spark.

Panels, replay, `papilio watch` and `papilio compare` all look at runs through `RunRecording`.
"""

from engine.recording.recording import RunRecording
from engine.recording.state import Decision, NodeState, QueueState, RunState, Spill, State

__all__ = ["Decision", "NodeState", "QueueState", "RunRecording", "RunState", "Spill", "State"]
