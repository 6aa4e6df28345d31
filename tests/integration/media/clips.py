"""Sources on disk, and what a decoder gets out of a clip."""

from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np

from worker.domain.media import ClipFile
from worker.errors import JobError
from worker.media.frame_code import read_frame_number
from worker.media.source import PLAIN_FORMATS


@dataclass(frozen=True)
class LocalSource:
    path: Path
    label: str = "file:///talk.mp4"
    protocols: tuple[str, ...] = ("file",)
    formats: tuple[str, ...] = PLAIN_FORMATS
    late_seek_seconds: float = 0.0

    @property
    def input(self) -> str:
        return f"file:{self.path}"

    @property
    def size_bytes(self) -> int:
        return self.path.stat().st_size if self.path.is_file() else 0

    def failure(self) -> JobError | None:
        return None


@dataclass(frozen=True)
class Shown:
    """What a decoder gets out of a clip."""

    numbers: list[int | None]
    times: list[float]


def shown(path: Path, *, quarter_turns: int = 0) -> Shown:
    with av.open(str(path)) as container:
        frames = list(container.decode(video=0))
    pictures = (np.rot90(frame.to_ndarray(format="gray"), quarter_turns) for frame in frames)
    return Shown([read_frame_number(picture) for picture in pictures], [frame.time for frame in frames])


def track_seconds(clip: ClipFile) -> dict[str, float]:
    with av.open(str(clip.path)) as container:
        return {stream.type: float((stream.duration or 0) * stream.time_base) for stream in container.streams}
