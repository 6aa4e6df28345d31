"""A long talk with pictures: every frame carries its number, and people read known texts with pauses between them."""

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import cycle
from pathlib import Path

import av
import numpy as np
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from bench.asr.corpus import HUMAN, read_sound, recordings_folder
from bench.asr.synthesis import SAMPLE_RATE as READ_RATE
from worker.media.picture import SamplePicture

SOUND_RATE = 48_000
SHORTEST_PAUSE, LONGEST_PAUSE = 0.2, 4.0


def make_lecture(path: Path, *, seconds: float, size: tuple[int, int], fps: int) -> Path:
    """H.264 and AAC in MP4; the same every time."""
    with av.open(str(path), "w", format="mp4", options={"movflags": "faststart"}) as container:
        options = {"preset": "ultrafast", "crf": "23", "g": str(2 * fps), "bf": "2"}
        video = container.add_stream("libx264", rate=fps, options=options)
        video.width, video.height, video.pix_fmt = *size, "yuv420p"
        audio = container.add_stream("aac", rate=SOUND_RATE, layout="mono", bit_rate=96_000)
        picture, converter = SamplePicture(size, fps=fps), VideoReformatter()
        voice, at = _reading(round(seconds * SOUND_RATE)), 0
        for number in range(round(seconds * fps)):
            # up to the end of this picture, so that the last one has its sound too
            while at * fps < (number + 1) * SOUND_RATE and (samples := next(voice, None)) is not None:
                container.mux(audio.encode(_sound_frame(samples, at)))
                at += samples.size
            drawn = av.VideoFrame.from_ndarray(picture.draw(number), format="rgb24")
            frame = converter.reformat(drawn, format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, fps)
            container.mux(video.encode(frame))
        container.mux(video.encode(None))
        container.mux(audio.encode(None))
    return path


def _reading(wanted: int) -> Iterator[NDArray[np.int16]]:
    choice = random.Random(7)  # noqa: S311 - pauses, not a secret
    texts = [_at_48k(read_sound(recordings_folder() / name)) for name in HUMAN]
    left = wanted
    for text in cycle(texts):
        pause = np.zeros(round(choice.uniform(SHORTEST_PAUSE, LONGEST_PAUSE) * SOUND_RATE), dtype=np.int16)
        samples = np.concatenate([pause, text])[:left]
        for at in range(0, samples.size, 1024):
            yield samples[at : at + 1024]
        left -= samples.size
        if not left:
            return


def _at_48k(samples: NDArray[np.int16]) -> NDArray[np.int16]:
    positions = np.arange(0, samples.size, READ_RATE / SOUND_RATE)
    finer: NDArray[np.int16] = np.interp(positions, np.arange(samples.size), samples).astype(np.int16)
    return finer


def _sound_frame(samples: NDArray[np.int16], position: int) -> av.AudioFrame:
    frame = av.AudioFrame.from_ndarray(samples[None, :], format="s16", layout="mono")
    frame.sample_rate = SOUND_RATE
    frame.pts, frame.time_base = position, Fraction(1, SOUND_RATE)
    return frame
