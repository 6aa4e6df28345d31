"""What is listened to: people who read, from the speech engine's wheel, and a machine that speaks."""

import importlib.util
import wave
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import av
import numpy as np
from numpy.typing import NDArray

from bench.asr.synthesis import SAMPLE_RATE, speak

TWO_CITIES: Final = """It was the best of times, it was the worst of times, it was the age of wisdom, it was the age
of foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of light, it was the
season of darkness, it was the spring of hope, it was the winter of despair, we had everything before us, we had nothing
before us, we were all going direct to heaven, we were all going direct the other way, in short, the period was so far
like the present period, that some of its noisiest authorities insisted on its being received, for good or for evil,
in the superlative degree of comparison only."""
BECKETT: Final = "Ever tried. Ever failed. No matter. Try again. Fail again. Fail better."
#: file of the wheel and what is read in it; the third one there has no text that we could vouch for
HUMAN: Final = {"two_cities.wav": TWO_CITIES, "beckett.wav": BECKETT}
VOICES: Final = ("en-us", "en")
PASSAGES: Final = (
    """The quick brown fox jumps over the lazy dog. A good plan today is better than a perfect plan tomorrow. The museum
opens at nine in the morning, and closes late in the evening. Please bring an umbrella, because the weather will change
in the afternoon. She wrote a long letter to her brother, who lives near the harbour. The engineers measured the bridge
twice before they trusted the numbers. Every summer the children collected shells along the quiet beach. Nothing in the
report explained why the second engine had failed.""",
    """We are a small company that makes software for people who work with video. Our customers record long meetings
and lectures, and they want short pieces of them. In the past somebody had to sit down and cut each piece by hand. That
took hours, and the result was often wrong by a second or two. Now a machine does it, and it never gets tired. It reads
only the part of the file that it needs, it cuts between two pictures, and it writes down what was said.""",
)


@dataclass(frozen=True, slots=True)
class Recording:
    name: str
    is_human: bool
    text: str
    wav: Path
    seconds: float


def recordings_folder() -> Path:
    spec = importlib.util.find_spec("moonshine_voice")
    if spec is None or spec.origin is None:
        raise SystemExit("the package moonshine-voice is not installed; its recordings are what is listened to")
    return Path(spec.origin).parent / "assets"


def make_corpus(directory: Path) -> list[Recording]:
    human = [
        _recording(directory, Path(name).stem, read_sound(recordings_folder() / name), text, is_human=True)
        for name, text in HUMAN.items()
    ]
    return human + [
        _recording(directory, f"passage {number}, {voice}", speak(text, voice=voice), text, is_human=False)
        for number, text in enumerate(PASSAGES, 1)
        for voice in VOICES
    ]


def read_sound(path: Path) -> NDArray[np.int16]:
    """As recognizers want it: 16 kHz, mono."""
    resampler = av.AudioResampler("s16", "mono", SAMPLE_RATE)
    with av.open(str(path)) as container:
        pieces = [piece for frame in container.decode(audio=0) for piece in resampler.resample(frame)]
    pieces += resampler.resample(None)
    return np.concatenate([piece.to_ndarray()[0] for piece in pieces])


def write_wav(path: Path, samples: NDArray[np.int16]) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, SAMPLE_RATE, 0, "NONE", ""))
        file.writeframes(samples.astype("<i2").tobytes())
    return path


def _recording(directory: Path, name: str, samples: NDArray[np.int16], text: str, *, is_human: bool) -> Recording:
    path = write_wav(directory / f"{name.replace(', ', '-').replace(' ', '-')}.wav", samples)
    return Recording(name, is_human, text, path, samples.size / SAMPLE_RATE)
