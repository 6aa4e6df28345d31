"""A sample to show and to test with: every frame carries its number, and the sound is human speech."""

import wave
from collections.abc import Iterator
from fractions import Fraction
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Final

import av
import numpy as np
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from worker.media.picture import SamplePicture

SAMPLE_RATE: Final = 48_000
#: readings of Dickens and Beckett that lie in the speech engine's wheel; read there, never copied
SPEECH_FILES: Final = ("two_cities.wav", "beckett.wav", "endgame_nagg_nell.wav")
AUDIO_CHUNK: Final = 4096

Sound = NDArray[np.int16]


def make_sample(
    path: Path,
    *,
    seconds: float = 30,
    fps: Fraction | int = 30,
    size: tuple[int, int] = (640, 360),
    gop: int = 60,
    b_frames: int = 2,
    faststart: bool = True,
    speech: bool = True,
) -> Path:
    """Write H.264 and AAC in MP4; chimes stand in for speech if it is unwanted or not installed."""
    rate = Fraction(fps)
    options = {"movflags": "faststart"} if faststart else {}
    with av.open(str(path), "w", format="mp4", options=options) as container:
        video = container.add_stream(
            "libx264",
            rate=rate,
            options=_x264_options(gop=gop, b_frames=b_frames),
        )
        video.width, video.height = size
        video.pix_fmt = "yuv420p"
        audio = container.add_stream("aac", rate=SAMPLE_RATE, layout="mono", bit_rate=96_000)
        sounds = _in_chunks(_sound(seconds, speech=speech))
        picture = SamplePicture(size, fps=float(rate))
        converter = VideoReformatter()
        heard = 0
        for number in range(round(seconds * rate)):
            # sound and picture alternate, so that a reader of any second finds both near each other
            while heard < (number + 1) / rate * SAMPLE_RATE and (chunk := next(sounds, None)) is not None:
                container.mux(audio.encode(_audio_frame(chunk, heard)))
                heard += chunk.size
            drawn = av.VideoFrame.from_ndarray(picture.draw(number), format="rgb24")
            # one converter for all frames: a frame's own would set itself up anew each time
            frame = converter.reformat(drawn, format="yuv420p")
            frame.pts, frame.time_base = number, 1 / rate
            container.mux(video.encode(frame))
        container.mux(video.encode(None))
        container.mux(audio.encode(None))
    return path


def _x264_options(*, gop: int, b_frames: int) -> dict[str, str]:
    # without sc_threshold x264 also puts keyframes where the picture changes much; here only `gop` decides
    keyframes = {"g": str(gop), "bf": str(b_frames), "sc_threshold": "0"}
    return {"preset": "ultrafast", "crf": "23", "threads": "2", **keyframes}


def _audio_frame(samples: Sound, position: int) -> av.AudioFrame:
    frame = av.AudioFrame.from_ndarray(samples[None, :], format="s16", layout="mono")
    frame.sample_rate = SAMPLE_RATE
    frame.pts, frame.time_base = position, Fraction(1, SAMPLE_RATE)
    return frame


def _in_chunks(sound: Sound) -> Iterator[Sound]:
    return (sound[at : at + AUDIO_CHUNK] for at in range(0, sound.size, AUDIO_CHUNK))


def _sound(seconds: float, *, speech: bool) -> Sound:
    wanted = round(seconds * SAMPLE_RATE)
    readings = _speech_files() if speech else []
    if not readings:
        return _chimes(wanted)
    parts, have = list[Sound](), 0
    for reading in cycle(readings):
        if have >= wanted:
            break
        parts.append(_read_wav(reading))
        have += parts[-1].size
    return np.concatenate(parts)[:wanted]


def _speech_files() -> list[Path]:
    # find_spec, not import: the engine would load its runtime
    spec = find_spec("moonshine_voice")
    if spec is None or spec.origin is None:
        return []
    assets = Path(spec.origin).parent / "assets"
    return [assets / name for name in SPEECH_FILES if (assets / name).is_file()]


def _read_wav(path: Path) -> Sound:
    with wave.open(str(path)) as reading:
        rate = reading.getframerate()
        samples = np.frombuffer(reading.readframes(reading.getnframes()), dtype=np.int16)
    positions = np.arange(0, samples.size, rate / SAMPLE_RATE)
    return np.interp(positions, np.arange(samples.size), samples).astype(np.int16)


def _chimes(samples: int) -> Sound:
    """A decaying note every second, each second another pitch, so that sound can be told apart too."""
    time = np.arange(samples) / SAMPLE_RATE
    pitch = 330 * 2 ** ((np.floor(time) * 5 % 12) / 12)
    within = time % 1.0
    return (np.sin(2 * np.pi * pitch * within) * np.exp(-5 * within) * 9000).astype(np.int16)
