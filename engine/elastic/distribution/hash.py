"""Hash: what has the same key goes to the same node, keys spread by chance."""

from __future__ import annotations

from collections.abc import Sequence

from engine.elastic.distribution import Distribution, Parcel

_MIX = 0x9E3779B97F4A7C15  # keys that follow each other end up far apart
_WORD = (1 << 64) - 1


def hashed(key: int) -> int:
    """A key as an even number of 64 bits, the same in every process."""
    mixed = (key * _MIX) & _WORD
    mixed ^= mixed >> 32
    return (mixed * _MIX) & _WORD


class Hash(Distribution):
    """A parcel goes where the hash of its key says."""

    def choose(self, parcel: Parcel, queues: Sequence[float]) -> Sequence[int]:
        # The high bits: those of a product are the well mixed ones.
        return ((hashed(parcel.key) * len(queues)) >> 64,)
