"""The base of everything that stands in a workflow file."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Kept(BaseModel):
    """Fields this version does not know stay with the object and are written back."""

    model_config = ConfigDict(extra="allow", populate_by_name=True, defer_build=True)
