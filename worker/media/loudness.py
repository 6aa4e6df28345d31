"""How loud a clip is, as ffmpeg's EBU R 128 meter writes it down, and what makes it as loud as wanted."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from worker.domain.media import Loudness
from worker.errors import OutputCorrupt

#: the meter writes ten blocks a second, each shorter than this; only the last one tells about all of it
TAIL_BYTES: Final = 4096
#: the meter's own floor: nothing was loud enough to be measured
SILENCE_LUFS: Final = -70.0
#: room for what lossy coding adds; players clip above 0
CEILING_DBTP: Final = -1.5
_KEY: Final = "lavfi.r128."


@dataclass(frozen=True, slots=True)
class Gain:
    """Filters that bring sound to a target: a plain factor where the peaks allow it, else a compressor too."""

    filters: tuple[tuple[str, dict[str, Any]], ...]


def read_report(path: Path) -> Loudness:
    """From the file that `meter` wrote."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError as exc:
        raise OutputCorrupt(f"{path.name} was not written: the loudness is not known") from exc
    block = text[text.rfind("\nframe:") :] if "\nframe:" in text else text
    found = dict(line.removeprefix(_KEY).split("=", 1) for line in block.splitlines() if line.startswith(_KEY))
    try:
        peaks = [float(value) for key, value in found.items() if key.startswith("true_peaks_ch")]
        return Loudness(max(float(found["I"]), SILENCE_LUFS), float(found["LRA"]), _decibels(max(peaks)))
    except (KeyError, ValueError) as exc:
        raise OutputCorrupt(f"{path.name} does not tell how loud the clip is") from exc


def meter(sound: Any, report: Path) -> Any:
    """Sound passes unchanged, and what is measured lies in `report` when it has passed."""
    return sound.filter("ebur128", metadata=1, peak="true").filter("ametadata", mode="print", file=str(report))


def gain_for(measured: Loudness, target_lufs: float) -> Gain:
    """A factor leaves the dynamics alone; it is not enough when it would push peaks over the ceiling."""
    if measured.integrated_lufs <= SILENCE_LUFS or measured.true_peak_dbtp is None:
        return Gain(())
    decibels = target_lufs - measured.integrated_lufs
    if measured.true_peak_dbtp + decibels <= CEILING_DBTP or decibels < 0:
        return Gain((("volume", {"volume": f"{decibels:.2f}dB", "precision": "float"}),))
    wanted = {"I": f"{target_lufs:.2f}", "TP": CEILING_DBTP, "LRA": min(50, max(1, math.ceil(measured.range_lu)))}
    return Gain((("loudnorm", wanted),))


def _decibels(amplitude: float) -> float | None:
    return round(20 * math.log10(amplitude), 2) if amplitude > 0 else None
