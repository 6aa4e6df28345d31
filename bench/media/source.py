"""The source that everybody cuts: every frame tells its number, and no half second of its sound comes twice."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import av
import numpy as np

from bench.media.scenery import SAMPLE_RATE, Scene, Scenery, scenes, second_of_sound

#: part of the file's name: another way of making it is another source
VERSION: Final = 2
X264: Final = {
    "preset": "superfast",
    "profile": "high",
    "bf": "3",
    "refs": "3",
    "maxrate": "4000k",
    "bufsize": "8000k",
    # keyframes at cuts only, and closed ones
    "g": "250",
    "sc_threshold": "0",
    "forced-idr": "1",
}

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Recipe:
    #: of a source that shall be lengthened: eights, which are whole numbers of AAC packets and leave no seam
    seconds: int
    size: tuple[int, int] = (1280, 720)
    fps: int = 30
    seed: int = 7
    video_kbit: int = 2500

    @property
    def name(self) -> str:
        width, height = self.size
        return f"source-{width}x{height}p{self.fps}-{self.seconds}s-{self.video_kbit}k-seed{self.seed}-v{VERSION}.mp4"


@dataclass(frozen=True, slots=True)
class NumberedSource:
    """A file whose frame n is shown at n / fps; after `frames` the numbers begin again."""

    path: Path
    seconds: float
    fps: int
    frames: int


def ensure_source(recipe: Recipe, folder: Path, tell: Tell) -> NumberedSource:
    """Made once and kept. Blocks."""
    path = folder / recipe.name
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        _write(recipe, unfinished, tell)
        unfinished.rename(path)
    return NumberedSource(path, recipe.seconds, recipe.fps, recipe.seconds * recipe.fps)


def _write(recipe: Recipe, path: Path, tell: Tell) -> None:
    with av.open(str(path), "w", format="mp4", options={"movflags": "faststart"}) as container:
        video = container.add_stream("libx264", rate=recipe.fps, options=X264)
        video.width, video.height = recipe.size
        video.pix_fmt = "yuv420p"
        video.bit_rate = recipe.video_kbit * 1000
        # the quick coder: the thorough one takes as long as the picture
        audio = container.add_stream(
            "aac", rate=SAMPLE_RATE, layout="stereo", bit_rate=128_000, options={"aac_coder": "fast"}
        )
        scenery = Scenery(recipe.size, seed=recipe.seed)
        for number, scene in _frames(recipe):
            if number % recipe.fps == 0:
                second = number // recipe.fps
                if second % 10 == 0:
                    tell(f"making the source: {second} of {recipe.seconds} s")
                container.mux(audio.encode(_sound_frame(second, seed=recipe.seed)))
            frame = av.VideoFrame.from_ndarray(scenery.draw(number, scene), format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, recipe.fps)
            if number == scene.first:
                frame.pict_type = 1
            container.mux(video.encode(frame))
        container.mux(video.encode(None))
        container.mux(audio.encode(None))


def _frames(recipe: Recipe) -> Iterator[tuple[int, Scene]]:
    total = recipe.seconds * recipe.fps
    planned = list(scenes(total, recipe.fps, seed=recipe.seed))
    ends = [scene.first for scene in planned[1:]] + [total]
    for scene, end in zip(planned, ends, strict=True):
        for number in range(scene.first, end):
            yield number, scene


def _sound_frame(second: int, *, seed: int) -> av.AudioFrame:
    mono = second_of_sound(second, seed=seed)
    frame = av.AudioFrame.from_ndarray(np.repeat(mono, 2)[None, :], format="s16", layout="stereo")
    frame.sample_rate = SAMPLE_RATE
    frame.pts, frame.time_base = second * SAMPLE_RATE, Fraction(1, SAMPLE_RATE)
    return frame


def lengthen(source: NumberedSource, path: Path, *, seconds: int, movflags: str) -> NumberedSource:
    """The same packets again and again on one timeline: as many bytes as a long recording has, in no time. Blocks."""
    rounds = -(-seconds // int(source.seconds))
    last_dts: dict[int, int] = {}
    with av.open(str(path), "w", format="mp4", options={"movflags": movflags}) as output:
        streams: dict[int, Any] = {}
        for turn in range(rounds):
            with av.open(str(source.path)) as opened:
                for stream in opened.streams:
                    if stream.index not in streams:
                        streams[stream.index] = output.add_stream_from_template(stream)
                for packet in opened.demux():
                    if packet.dts is None or packet.pts is None or packet.time_base is None:
                        continue
                    shift = round(turn * source.seconds / packet.time_base)
                    packet.pts, packet.dts = packet.pts + shift, packet.dts + shift
                    index = packet.stream_index
                    # a coder's lead-in lies before its own zero, where the round before still sounds
                    if packet.dts > last_dts.get(index, packet.dts - 1):
                        last_dts[index] = packet.dts
                        packet.stream = streams[index]
                        output.mux(packet)
    return NumberedSource(path, rounds * source.seconds, source.fps, source.frames)
