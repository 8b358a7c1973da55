"""The colours of nodes, units and tables by number, the same in panels and reports; told apart by colour-blind readers
too (after Okabe and Ito)."""

from __future__ import annotations

from functools import lru_cache

# On a light and on a dark ground: blue, orange, green, vermilion, purple, sky, olive, slate, wine, indigo.
_PAIRS = (
    ("#0072b2", "#4aa3e8"), ("#d98c00", "#f2b134"), ("#009e73", "#2fc79a"), ("#d55e00", "#ff8a4c"),
    ("#b5508f", "#e39bc8"), ("#4ba3d8", "#9bd3f5"), ("#8a7a00", "#d9cb52"), ("#5d6b7e", "#a9b4c4"),
    ("#882255", "#d2699a"), ("#5b4db5", "#a093f5"),
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
