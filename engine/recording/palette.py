"""The colours of nodes, units and tables by number, the same in panels and reports; told apart by colour-blind readers
too (after Okabe and Ito)."""

from __future__ import annotations

from functools import lru_cache

# On a light and on a dark ground: blue, orange, green, vermilion, purple, sky, olive, slate, wine, indigo.
_PAIRS = (
    ("#0a71b0", "#4ba2e7"), ("#d98c00", "#f3b136"), ("#0d9a70", "#2dc79b"), ("#ef6737", "#ff8a4c"),
    ("#c15d9d", "#d498cf"), ("#4ca3d7", "#a0d6f9"), ("#8a7900", "#e7d763"), ("#5d697d", "#b5b9c1"),
    ("#892156", "#d36a9b"), ("#5b4db6", "#7f88f5"),
)  # fmt: skip
_ROUNDS = (0.0, 0.4, 0.62)  # how much of the ground is in a colour of the first, second and third round
WHITE = "#ffffff"


@lru_cache(maxsize=4096)
def colour(number: int, ground: str = WHITE, *, dark: bool = False) -> str:
    """The colour with this number on a ground; a second round is nearer to the ground than the first."""
    base = _PAIRS[number % len(_PAIRS)][dark]
    return mixed(base, ground, _ROUNDS[number // len(_PAIRS) % len(_ROUNDS)])


@lru_cache(maxsize=4096)
def mixed(base: str, ground: str, part: float) -> str:
    """A colour with so much of the ground in it."""
    one, two = (tuple(int(text[at : at + 2], 16) for at in (1, 3, 5)) for text in (base, ground))
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in zip(one, two, strict=True))
