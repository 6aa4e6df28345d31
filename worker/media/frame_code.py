"""Frame numbers written into the picture, so that whoever decodes it can tell which frame it is."""

from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

GUARD: Final = (1, 0, 1, 0)
NUMBER_BITS: Final = 20
CHECK_BITS: Final = 8
CELLS: Final = len(GUARD) + NUMBER_BITS + CHECK_BITS
#: the strip fills the bottom eighteenth of the picture, over its whole width
STRIP_PARTS: Final = 18
DARK: Final = 24
LIGHT: Final = 232
#: less difference than this between light and dark is a picture without a strip
MIN_CONTRAST: Final = 80


def strip_height(height: int) -> int:
    return max(4, round(height / STRIP_PARTS))


def paint_frame_number(picture: NDArray[np.uint8], number: int) -> None:
    """Write `number` into the bottom rows of an RGB or grey picture, in place."""
    height, width = picture.shape[:2]
    edges = np.linspace(0, width, CELLS + 1).round().astype(int)
    top = height - strip_height(height)
    for cell, bit in enumerate(_encode(number)):
        picture[top:, edges[cell] : edges[cell + 1]] = LIGHT if bit else DARK


def read_frame_number(picture: NDArray[np.uint8]) -> int | None:
    """The number painted into an RGB or grey picture of any size; None when it is absent or damaged."""
    grey = picture.mean(axis=2) if picture.ndim == 3 else picture
    height, width = grey.shape
    strip = strip_height(height)
    # the middle of each cell: scaling and compression smear only its edges
    rows = grey[height - strip + strip // 4 : height - strip // 4 or height]
    edges = np.linspace(0, width, CELLS + 1)
    inset = width / CELLS / 4
    levels = [
        float(rows[:, int(left + inset) : max(int(right - inset), int(left + inset) + 1)].mean())
        for left, right in pairwise(edges)
    ]
    if max(levels) - min(levels) < MIN_CONTRAST:
        return None
    threshold = (max(levels) + min(levels)) / 2
    return _decode([int(level > threshold) for level in levels])


def _encode(number: int) -> list[int]:
    bits = [(number >> shift) & 1 for shift in reversed(range(NUMBER_BITS))]
    check = _checksum(number)
    return [*GUARD, *bits, *((check >> shift) & 1 for shift in reversed(range(CHECK_BITS)))]


def _decode(bits: list[int]) -> int | None:
    number = int("".join(map(str, bits[len(GUARD) : len(GUARD) + NUMBER_BITS])), 2)
    return number if bits == _encode(number) else None


def _checksum(number: int) -> int:
    # a multiplicative hash: neighbours differ in many check bits, so a blend of two frames is refused
    return (number * 0x9E3779B1 >> 13) & ((1 << CHECK_BITS) - 1)
