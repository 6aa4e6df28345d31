"""Pictures and sound that look like work to an encoder, can be told apart everywhere, and cost little to make."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from worker.media.frame_code import paint_frame_number

SAMPLE_RATE: Final = 48_000
#: seconds; as x264 leaves them in a talk with cuts: 5.8 on average, 8.3 at most
SHORTEST_SCENE: Final = 3.3
LONGEST_SCENE: Final = 8.3
#: of the luma; what a camera adds to every frame: a veryfast re-encode then takes about as many bits as the source
GRAIN: Final = 4.0
NOTES_PER_SECOND: Final = 4

Plane = NDArray[np.uint8]
Sound = NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class Scene:
    """Pictures from one cut to the next: a texture that is panned over, and a patch of another before it."""

    first: int
    texture: int
    pan: tuple[int, int]
    patch: tuple[int, int]


class Scenery:
    """Draws numbered frames as I420."""

    def __init__(self, size: tuple[int, int], *, seed: int) -> None:
        self._width, self._height = size
        self._random = np.random.default_rng(seed)
        # room to pan in
        shape = (self._height * 2, self._width * 2)
        self._lumas = [_texture(self._random, shape, low=24, high=200) for _ in range(4)]
        half = (shape[0] // 2, shape[1] // 2)
        self._chromas = [_texture(self._random, half, low=90, high=166) for _ in range(5)]
        grain = self._random.normal(3 * GRAIN, GRAIN, (self._height * 2, self._width * 2))
        self._grain = grain.clip(0, 6 * GRAIN).astype(np.uint8)

    def draw(self, number: int, scene: Scene) -> Plane:
        width, height = self._width, self._height
        picture = np.empty((height * 3 // 2, width), np.uint8)
        age = number - scene.first
        x, y = _bounce(scene.pan[0] * age, width), _bounce(scene.pan[1] * age, height)
        luma = picture[:height]
        luma[:] = self._lumas[scene.texture][y : y + height, x : x + width]
        self._draw_patch(luma, scene, age)
        # another piece of grain each time: grain that stands still costs an encoder nothing
        left, top = self._random.integers((width, height))
        luma += self._grain[top : top + height, left : left + width]
        paint_frame_number(luma, number)
        half = (slice(y // 2, y // 2 + height // 2), slice(x // 2, x // 2 + width // 2))
        colours = picture[height:].reshape(2, height // 2, width // 2)
        for plane, texture in enumerate((scene.texture, scene.texture + 1)):
            colours[plane] = self._chromas[texture][half]
        return picture

    def _draw_patch(self, luma: Plane, scene: Scene, age: int) -> None:
        height, width = luma.shape[0] // 3, luma.shape[1] // 3
        x = _bounce(scene.patch[0] * age, luma.shape[1] - width)
        y = _bounce(scene.patch[1] * age, luma.shape[0] - height)
        luma[y : y + height, x : x + width] = self._lumas[(scene.texture + 1) % 4][:height, :width]


def scenes(frames: int, fps: int, *, seed: int) -> Iterator[Scene]:
    random = np.random.default_rng([seed, 1])
    first = 0
    while first < frames:
        pan, patch = random.integers(-3, 4, 2), random.integers(-5, 6, 2)
        yield Scene(first, int(random.integers(4)), (int(pan[0]), int(pan[1])), (int(patch[0]), int(patch[1])))
        first += round(random.uniform(SHORTEST_SCENE, LONGEST_SCENE) * fps)


def second_of_sound(second: int, *, seed: int) -> Sound:
    """Mono; notes at random with a hiss at their start, so that any half second is found again to the sample."""
    random = np.random.default_rng([seed, 2, second])
    length = SAMPLE_RATE // NOTES_PER_SECOND
    time = np.arange(length) / SAMPLE_RATE
    notes = []
    for _ in range(NOTES_PER_SECOND):
        pitch, loudness = random.uniform(150, 1200), random.uniform(4000, 9000)
        tone = np.sin(2 * np.pi * pitch * time) + 0.5 * np.sin(2 * np.pi * 2.01 * pitch * time)
        notes.append(loudness * (tone * np.exp(-6 * time) + random.normal(0, 0.4, length) * np.exp(-25 * time)))
    return np.concatenate(notes).astype(np.int16)


def _bounce(way: int, room: int) -> int:
    """To and fro between 0 and `room`."""
    place = abs(way) % (2 * room)
    return min(place, 2 * room - place)


def _texture(random: np.random.Generator, shape: tuple[int, int], *, low: int, high: int) -> Plane:
    """Coarse to fine, as landscapes are: each octave has half the size and half the strength of the one before."""
    total = np.zeros(shape)
    for octave in range(3, 8):
        coarse = random.random((2**octave, 2**octave))
        rows = np.linspace(0, 2**octave - 1, shape[0])
        columns = np.linspace(0, 2**octave - 1, shape[1])
        wide = np.stack([np.interp(columns, np.arange(2**octave), row) for row in coarse])
        top = rows.astype(int)
        below = np.minimum(top + 1, 2**octave - 1)
        share = (rows - top)[:, None]
        total += (wide[top] * (1 - share) + wide[below] * share) / 2**octave
    total -= total.min()
    scaled: Plane = (low + total / total.max() * (high - low)).astype(np.uint8)
    return scaled
