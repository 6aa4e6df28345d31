"""Synthetic speech: espeak-ng, whose library and voices come in a wheel, called as C."""

import ctypes
from functools import cache
from typing import Final

import av
import espeakng_loader
import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE: Final = 16_000
_SYNCHRONOUS: Final = 2
_UTF8: Final = 1
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


def speak(text: str, *, voice: str = "en-us") -> NDArray[np.int16]:
    """The text as spoken by a voice, 16 kHz mono."""
    library, rate = _library()
    pieces: list[NDArray[np.int16]] = []

    def keep(samples: "ctypes._Pointer[ctypes.c_short]", count: int, _events: object) -> int:
        if samples and count:
            pieces.append(np.ctypeslib.as_array(samples, (count,)).astype(np.int16))
        return 0

    # held until the end: the library calls it, and Python does not know
    callback = _CALLBACK(keep)
    library.espeak_SetSynthCallback(callback)
    if library.espeak_SetVoiceByName(voice.encode()) != 0:
        raise ValueError(f"espeak-ng has no voice {voice!r}")
    content = text.encode() + b"\0"
    library.espeak_Synth(content, len(content), 0, 0, 0, _UTF8, None, None)
    library.espeak_Synchronize()
    return _resampled(np.concatenate(pieces), rate)


@cache
def _library() -> tuple[ctypes.CDLL, int]:
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    rate = library.espeak_Initialize(_SYNCHRONOUS, 0, espeakng_loader.get_data_path().encode(), 0)
    if rate <= 0:
        raise RuntimeError("espeak-ng does not find its voices")
    return library, rate


def _resampled(samples: NDArray[np.int16], rate: int) -> NDArray[np.int16]:
    frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout="mono")
    frame.sample_rate = rate
    resampler = av.AudioResampler("s16", "mono", SAMPLE_RATE)
    frames = [*resampler.resample(frame), *resampler.resample(None)]
    return np.concatenate([each.to_ndarray()[0] for each in frames])
