"""How wide a text is, where nobody can ask the font: a picture is shown with whatever font its reader has.

The widths are those of DejaVu Sans, in thousandths of the letters' size. It is the widest of the fonts that desktops
come with, so what fits by it fits everywhere.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from designer.drawing.sheet import FONTS

_PLAIN = {
    275: "'", 278: "ijl", 295: "IJ", 318: " ,.", 337: '/:;\\|', 352: "f", 361: "-", 390: "()[]", 392: "t", 401: "!",
    411: "r", 460: '"', 500: "*_`", 521: "s", 525: "z", 531: "?", 550: "c", 557: "L", 575: "F", 579: "k", 592: "vxy",
    603: "P", 611: "TY", 612: "o", 613: "a", 615: "e", 632: "E", 634: "hnu", 635: "Sbdgpq", 636: "$0123456789{}",
    656: "K", 684: "AV", 685: "XZ", 686: "B", 695: "R", 698: "C", 732: "U", 748: "N", 752: "H", 770: "D", 775: "G",
    780: "&", 787: "OQ", 818: "w", 838: "#+<=>^~", 863: "M", 950: "%", 974: "m", 989: "W", 1000: "@",
}  # fmt: skip
_BOLD = {
    306: "'", 343: "ijl", 348: " ", 365: '/\\|', 372: "IJ", 380: ",.", 400: ":;", 415: "-", 435: "f", 456: "!",
    457: "()[]", 478: "t", 493: "r", 500: "_`", 521: '"', 523: "*", 580: "?", 582: "z", 593: "c", 595: "s", 637: "L",
    645: "x", 652: "vy", 665: "k", 675: "a", 678: "e", 682: "T", 683: "EF", 687: "o", 696: "$0123456789",
    712: "hnu{}", 716: "bdgpq", 720: "S", 724: "Y", 725: "Z", 733: "P", 734: "C", 762: "B", 770: "R", 771: "X",
    774: "AV", 775: "K", 812: "U", 821: "G", 830: "D", 837: "HN", 838: "#+<=>^~", 850: "OQ", 872: "&", 924: "w",
    995: "M", 1000: "@", 1002: "%", 1042: "m", 1103: "W",
}  # fmt: skip

_MONO = 602
_OTHER = {False: 720, True: 805}  # of a letter of another script, bold or not: what Cyrillic ones have on average
_WIDE = 1000  # of a Chinese, Japanese or Korean letter


@lru_cache(maxsize=2)
def _table(bold: bool) -> dict[str, int]:
    return {letter: width for width, letters in (_BOLD if bold else _PLAIN).items() for letter in letters}


def text_width(text: str, pixels: float, bold: bool = False, mono: bool = False) -> float:
    """The width of a line of text."""
    if mono:
        return sum(_WIDE if _is_wide(letter) else _MONO for letter in text) * pixels / 1000
    known = _table(bold)
    return sum(known.get(letter) or _other(letter, bold) for letter in text) * pixels / 1000


def font_width(text: str, font: str) -> float:
    """The width of a line of text in one of the canvas's fonts."""
    pixels, weight = FONTS[font]
    return text_width(text, pixels, weight > 500)


def _is_wide(letter: str) -> bool:
    return letter > "~" and (letter == "…" or unicodedata.east_asian_width(letter) in "WF")


def _other(letter: str, bold: bool) -> int:
    """`é` is as wide as `e`, a mark upon a letter takes no room of its own."""
    if unicodedata.combining(letter):
        return 0
    base = unicodedata.normalize("NFD", letter)[0]
    return _table(bold).get(base) or (_WIDE if _is_wide(letter) else _OTHER[bold])
