"""The moving picture of the sample, drawn with arrays because a fresh machine has no fonts."""

from math import cos, pi, sin
from typing import Final

import numpy as np
from numpy.typing import NDArray

from worker.media.frame_code import paint_frame_number

Picture = NDArray[np.uint8]

#: 5 x 7 dots, one string per row
GLYPHS: Final = {
    "0": "01110 10001 10011 10101 11001 10001 01110",
    "1": "00100 01100 00100 00100 00100 00100 01110",
    "2": "01110 10001 00001 00110 01000 10000 11111",
    "3": "11110 00001 00001 01110 00001 00001 11110",
    "4": "00010 00110 01010 10010 11111 00010 00010",
    "5": "11111 10000 11110 00001 00001 10001 01110",
    "6": "00110 01000 10000 11110 10001 10001 01110",
    "7": "11111 00001 00010 00100 01000 01000 01000",
    "8": "01110 10001 10001 01110 10001 10001 01110",
    "9": "01110 10001 10001 01111 00001 00010 01100",
    ":": "00000 00100 00100 00000 00100 00100 00000",
    ".": "00000 00000 00000 00000 00000 00110 00110",
}
#: one hue after another, joined to a loop: indigo, violet, coral, amber, teal
PALETTE: Final = ((38, 34, 98), (104, 58, 160), (226, 92, 108), (244, 168, 88), (44, 148, 160))
INK: Final = (250, 250, 252)
SHADE: Final = (16, 16, 36)
ACCENT: Final = (255, 206, 92)
#: the background drifts through its loop in this time
DRIFT_SECONDS: Final = 24.0


class SamplePicture:
    """Draws frame after frame; what does not move is computed once."""

    def __init__(self, size: tuple[int, int], *, fps: float) -> None:
        self._width, self._height = size
        self._fps = fps
        self._dot = max(1, self._height // 90)
        self._backdrop = _backdrop(self._width, self._height)
        self._radius = self._height * 0.27
        self._dial = Stamp(_disc(self._radius), SHADE, 0.45)
        self._mark = Stamp(_disc(self._height * 0.011), INK, 0.7)
        ball = _disc(self._height * 0.045)
        # a fading tail shows the direction of time
        self._ball = [
            *(Stamp(ball, ACCENT, 0.32 - echo * 0.05) for echo in range(5, 0, -1)),
            Stamp(ball, ACCENT, 1),
        ]
        box = _rounded_box(int(self._width * 0.48), int(self._height * 0.40), radius=self._height * 0.05)
        self._panel = Stamp(box, SHADE, 0.55)

    def draw(self, number: int) -> Picture:
        seconds = number / self._fps
        loop = self._backdrop.shape[1] - self._width
        offset = int(seconds / DRIFT_SECONDS * loop) % loop
        picture = self._backdrop[:, offset : offset + self._width].copy()
        self._draw_dial(picture, seconds)
        self._draw_panel(picture, number, seconds)
        paint_frame_number(picture, number)
        return picture

    def _draw_dial(self, picture: Picture, seconds: float) -> None:
        x, y = self._width * 0.235, self._height * 0.44
        self._dial.put(picture, (x, y))
        for mark in range(12):
            dx, dy = _on_circle(mark / 12, self._radius * 0.86)
            self._mark.put(picture, (x + dx, y + dy))
        for age, ball in zip(range(len(self._ball) - 1, -1, -1), self._ball, strict=True):
            dx, dy = _on_circle(seconds / 2 - age * 0.018, self._radius * 0.62)
            ball.put(picture, (x + dx, y + dy))

    def _draw_panel(self, picture: Picture, number: int, seconds: float) -> None:
        x, y, dot = self._width * 0.715, self._height * 0.44, self._dot
        self._panel.put(picture, (x, y))
        _write(picture, f"{number:06d}", (x, y - 6 * dot), dot=dot * 2, colour=INK)
        clock = f"{int(seconds // 60):02d}:{seconds % 60:06.3f}"
        _write(picture, clock, (x, y + 11 * dot), dot=dot, colour=ACCENT)


class Stamp:
    """A one-coloured shape, prepared so that laying it over a picture is one integer multiplication."""

    def __init__(self, cover: NDArray[np.float32], colour: tuple[int, int, int], strength: float) -> None:
        opaque = (cover * strength * 256)[..., None]
        self._keep = (256 - opaque).astype(np.uint16)
        self._add = (opaque * np.array(colour, dtype=np.float32)).astype(np.uint16)

    def put(self, picture: Picture, centre: tuple[float, float]) -> None:
        height, width = self._keep.shape[:2]
        left, top = int(centre[0] - width / 2), int(centre[1] - height / 2)
        box = picture[top : top + height, left : left + width]
        box[:] = (box * self._keep + self._add) >> 8


def _backdrop(width: int, height: int) -> Picture:
    """A wide diagonal gradient whose right end repeats its left, so that it can drift for ever."""
    loop = width * 4
    x = np.arange(loop + width)[None, :]
    y = np.arange(height)[:, None]
    wave = 0.07 * np.sin(2 * pi * x / loop * 3 + y / height * 2.2)
    place = ((x / loop + y / height * 0.16 + wave) % 1.0) * len(PALETTE)
    colours = np.array([*PALETTE, PALETTE[0]], dtype=np.float32)
    stops = np.arange(len(PALETTE) + 1)
    channels = [np.interp(place, stops, colours[:, channel]) for channel in range(3)]
    shade = 1.0 - 0.25 * (y / height)[..., None]
    backdrop: Picture = (np.stack(channels, axis=-1) * shade).astype(np.uint8)
    return backdrop


def _disc(radius: float) -> NDArray[np.float32]:
    """How much of each pixel a filled circle covers."""
    reach = int(radius) + 1
    grid = np.arange(-reach, reach + 1)
    distance = np.hypot(grid[None, :], grid[:, None])
    return np.clip(radius - distance + 0.5, 0, 1).astype(np.float32)


def _rounded_box(width: int, height: int, *, radius: float) -> NDArray[np.float32]:
    dx = np.abs(np.arange(width) - (width - 1) / 2)[None, :] - (width / 2 - radius)
    dy = np.abs(np.arange(height) - (height - 1) / 2)[:, None] - (height / 2 - radius)
    distance = np.hypot(np.maximum(dx, 0), np.maximum(dy, 0))
    cover: NDArray[np.float32] = np.clip(radius - distance + 0.5, 0, 1).astype(np.float32)
    return cover


def _on_circle(turn: float, radius: float) -> tuple[float, float]:
    """Clockwise from twelve o'clock."""
    return radius * sin(2 * pi * turn), -radius * cos(2 * pi * turn)


def _write(picture: Picture, text: str, centre: tuple[float, float], *, dot: int, colour: tuple[int, int, int]) -> None:
    rows = ("0".join(GLYPHS[char].split()[row] for char in text) for row in range(7))
    dots = np.array([[cell == "1" for cell in row] for row in rows])
    mask = dots.repeat(dot, axis=0).repeat(dot, axis=1)
    left, top = int(centre[0] - mask.shape[1] / 2), int(centre[1] - mask.shape[0] / 2)
    picture[top : top + mask.shape[0], left : left + mask.shape[1]][mask] = colour
