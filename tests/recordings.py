"""The human recordings that lie in the speech engine's wheel, as engines get them: 16 kHz, mono, 16 bits."""

import importlib.util
import wave
from pathlib import Path

import av
import numpy as np


def recording(name: str) -> Path:
    spec = importlib.util.find_spec("moonshine_voice")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "assets" / f"{name}.wav"


def decode_16k(source: object) -> "np.ndarray[tuple[int], np.dtype[np.int16]]":
    """Any sound that PyAV reads, from a path or an open file."""
    resampler = av.AudioResampler(format="s16", layout="mono", rate=16000)
    with av.open(source) as container:  # type: ignore[call-overload] - whatever PyAV takes
        frames = [part for frame in container.decode(audio=0) for part in resampler.resample(frame)]
    frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray()[0] for frame in frames])


def write_16k(name: str, path: Path) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(decode_16k(str(recording(name))).tobytes())
    return path
