"""The demo's material: its sample, the three jobs it sends, and how it checks what came back."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import av
import numpy as np

from worker.jobs.desk import JobDetail
from worker.media.frame_code import read_frame_number
from worker.media.sample import make_sample

FPS: Final = 30
SAMPLE_SECONDS: Final = 16
#: part of the file's name: another length is another sample
SAMPLE_NAME: Final = f"sample-{SAMPLE_SECONDS}s.mp4"
#: two AAC frames
SOUND_TOLERANCE_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class DemoJob:
    label: str
    start: float
    end: float
    wishes: Mapping[str, Any]

    @property
    def expected_frames(self) -> tuple[int, int]:
        """First and last frame with start ≤ t < end."""
        first, after = (math.ceil(Fraction(str(at)) * FPS) for at in (self.start, self.end))
        return first, after - 1

    def spec(self, sample: Path, *, transcript: bool) -> dict[str, Any]:
        wishes = {"transcript": transcript, "metadata": {"demo": self.label}, **self.wishes}
        return {"source": sample.as_uri(), "start": self.start, "end": self.end, **wishes}


#: in-points that lie neither on a keyframe (every 2 s) nor on a whole second
JOBS: Final = (
    DemoJob("frame-exact clip", 3.21, 8.5, {}),
    DemoJob("scaled-down clip", 9.77, 14.9, {"mode": "exact", "max_height": 180}),
    DemoJob("sound only", 1.3, 7.8, {"mode": "audio"}),
)


def ensure_sample(folder: Path) -> Path:
    """Made once; whole or not at all, whoever else makes it at the same time."""
    sample = folder / SAMPLE_NAME
    if not sample.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f".{uuid4()}.mp4"
        try:
            make_sample(unfinished, seconds=SAMPLE_SECONDS, fps=FPS).rename(sample)
        finally:
            unfinished.unlink(missing_ok=True)
    return sample


@dataclass(frozen=True, slots=True)
class Finding:
    """What the check of one clip found."""

    is_right: bool
    words: str


def check_clip(demo: DemoJob, job: JobDetail) -> Finding:
    """Decode the whole clip and compare it with what was asked for. Blocks."""
    clips = [one for one in (job.result or {}).get("artifacts", []) if one["kind"] == "clip"]
    if not clips:
        return Finding(is_right=False, words="there is no clip")
    path = Path(unquote(urlsplit(clips[0]["url"]).path))
    try:
        with av.open(str(path)) as container:
            return _check_picture(demo, container) if container.streams.video else _check_sound(demo, container)
    except (OSError, av.FFmpegError) as exc:
        return Finding(is_right=False, words=f"the clip cannot be read: {exc}")


def _check_picture(demo: DemoJob, container: av.container.InputContainer) -> Finding:
    pictures = (frame.to_ndarray(format="gray").astype(np.uint8, copy=False) for frame in container.decode(video=0))
    numbers = [read_frame_number(picture) for picture in pictures]
    first, last = demo.expected_frames
    is_right = numbers == list(range(first, last + 1))
    if is_right:
        return Finding(is_right, f"first frame {first}, last frame {last}, all {len(numbers)} in order")
    found = f"frames {numbers[0]} … {numbers[-1]} ({len(numbers)})" if numbers else "no frames"
    return Finding(is_right, f"{found}, expected {first} … {last} ({last - first + 1})")


def _check_sound(demo: DemoJob, container: av.container.InputContainer) -> Finding:
    seconds = sum(frame.samples / frame.sample_rate for frame in container.decode(audio=0))
    wanted = demo.end - demo.start
    is_right = abs(seconds - wanted) <= SOUND_TOLERANCE_SECONDS
    return Finding(is_right, f"{seconds:.2f} s of sound" + ("" if is_right else f", expected {wanted:.2f}"))
