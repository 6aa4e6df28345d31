"""A waveform as numbers: the loudest moments of each twentieth of a second, in the form players read."""

import json
import wave
from pathlib import Path
from typing import Any, Final

import numpy as np

from worker.errors import OutputCorrupt

PER_SECOND: Final = 20
#: 16-bit samples become 8-bit ones
SHIFT: Final = 8
#: samples that are looked at in one go
CHUNK_PEAKS: Final = 4096


def write_waveform(speech: Path, path: Path) -> None:
    """From the 16 kHz mono of the clip to JSON as audiowaveform writes it, version 2."""
    path.write_text(json.dumps(waveform_of(speech), separators=(",", ":")), encoding="utf-8")


def waveform_of(speech: Path) -> dict[str, Any]:
    try:
        with wave.open(str(speech)) as sound:
            rate = sound.getframerate()
            each = rate // PER_SECOND
            data = list[int]()
            while samples := sound.readframes(each * CHUNK_PEAKS):
                data += _extremes(np.frombuffer(samples, dtype="<i2"), each)
    except (OSError, EOFError, wave.Error) as exc:
        raise OutputCorrupt(f"{speech.name} cannot be read back: {exc}") from exc
    return {
        "version": 2,
        "channels": 1,
        "sample_rate": rate,
        "samples_per_pixel": each,
        "bits": 8,
        "length": len(data) // 2,
        "data": data,
    }


def _extremes(samples: Any, each: int) -> list[int]:
    """Lowest and highest of every `each` samples, one after the other."""
    missing = -len(samples) % each
    rows = np.pad(samples, (0, missing), mode="edge").reshape(-1, each)
    pairs = np.stack([rows.min(axis=1) >> SHIFT, rows.max(axis=1) >> SHIFT], axis=1)
    values: list[int] = pairs.ravel().tolist()
    return values
