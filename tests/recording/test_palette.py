"""The colours of nodes: told apart by every reader, and seen on either ground."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from engine.recording.palette import _PAIRS as PAIRS
from engine.recording.palette import colour

# How a screen looks to those who lack one kind of cone: Machado, Oliveira and Fernandes, 2009, severity 1; linear RGB.
SIGHTS = {
    "all three": np.eye(3),
    "no long": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "no middle": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "no short": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
GROUNDS = {False: "#ffffff", True: "#171a1f"}
APART = 12.0  # in CIE Lab, where 2.3 can just be told apart side by side


def linear(text: str) -> np.ndarray:
    value = np.array([int(text[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(text: str, sight: np.ndarray) -> np.ndarray:
    seen = TO_XYZ @ np.clip(sight @ linear(text), 0, 1) / np.array([0.95047, 1.0, 1.08883])
    root = np.where(seen > (6 / 29) ** 3, np.cbrt(seen), seen / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("sight", SIGHTS)
def test_colour_blind_readers_tell_any_two_colours_of_a_round_apart(dark: bool, sight: str) -> None:
    colours = [colour(number, GROUNDS[dark], dark=dark) for number in range(len(PAIRS))]
    for one, other in combinations(colours, 2):
        apart = np.linalg.norm(lab(one, SIGHTS[sight]) - lab(other, SIGHTS[sight]))
        assert apart >= APART, (one, other)


@pytest.mark.parametrize("dark", [False, True])
def test_every_colour_stands_out_from_its_ground(dark: bool) -> None:
    ground = TO_XYZ[1] @ linear(GROUNDS[dark])
    for number in range(len(PAIRS)):
        light = TO_XYZ[1] @ linear(colour(number, GROUNDS[dark], dark=dark))
        assert (max(light, ground) + 0.05) / (min(light, ground) + 0.05) >= 2.5, number
