"""What a right clip looks like, told from the request and the source before anything is cut."""

from typing import Final

from worker.domain.media import ClipRange, Probe
from worker.media.verify import ExpectedClip

#: less than two AAC frames; nobody sees or hears it
TOLERANCE_SECONDS: Final = 0.05
#: containers round up what they hold, and sound seldom ends with the picture
SOURCE_END_SECONDS: Final = 0.5
#: nobody notices a picture that comes up this much late
FIRST_FRAME_SECONDS: Final = 0.1
#: copying ends between packets, and pictures are stored in another order than they are shown
COPY_SECONDS: Final = 0.5


def expect_exact(probe: Probe, wanted: ClipRange, *, has_video: bool) -> ExpectedClip:
    """To the frame; only a source's very end may be missing, because containers promise too much there."""
    duration = wanted.duration_seconds
    tolerance = max(_frame_seconds(probe), TOLERANCE_SECONDS)
    reaches_end = wanted.end_seconds > probe.duration_seconds - SOURCE_END_SECONDS
    missing = SOURCE_END_SECONDS if reaches_end else 0.0
    return ExpectedClip(
        has_video=has_video,
        has_audio=probe.audio is not None,
        shortest_seconds=max(0.0, duration - missing - tolerance),
        longest_seconds=duration + tolerance,
        frames_before_seconds=duration,
    )


def expect_copy(probe: Probe, wanted: ClipRange) -> ExpectedClip:
    """`wanted` starts on a keyframe; the end is where packets allow it."""
    duration = wanted.duration_seconds
    slack = COPY_SECONDS + SOURCE_END_SECONDS
    return ExpectedClip(
        has_video=probe.video is not None,
        has_audio=probe.audio is not None,
        shortest_seconds=max(0.0, duration - slack),
        longest_seconds=duration + slack,
    )


def first_frame_by(probe: Probe, wanted: ClipRange) -> float:
    """When in the clip a picture must be on display: late only where the source's video starts late."""
    late = max(0.0, probe.video.start_seconds - wanted.start_seconds) if probe.video is not None else 0.0
    return late + max(2 * _frame_seconds(probe), FIRST_FRAME_SECONDS)


def _frame_seconds(probe: Probe) -> float:
    return 1 / probe.video.fps if probe.video is not None and probe.video.fps else 0.0
