"""What a right clip looks like, told from the request and the source before anything is cut."""

from typing import Final

from worker.domain.media import ClipFile, ClipRange, Probe
from worker.media.timeline import PageTimes
from worker.media.verify import ClipFacts, ExpectedClip

#: less than two AAC frames; nobody sees or hears it
TOLERANCE_SECONDS: Final = 0.05
#: containers round up what they hold, and sound seldom ends with the picture
SOURCE_END_SECONDS: Final = 0.5
#: nobody notices a picture that comes up this much late
FIRST_FRAME_SECONDS: Final = 0.1


def expect_exact(probe: Probe, wanted: ClipRange, *, has_video: bool, is_copied: bool = False) -> ExpectedClip:
    """To the frame; only a source's very end may be missing, because containers promise too much there.

    `is_copied`: sound that starts late in the source does so in the clip.
    """
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
        # what is missing at the start is filled with silence
        sound_by_seconds=None if is_copied else TOLERANCE_SECONDS,
    )


def expect_page(page: PageTimes) -> ExpectedClip:
    """Pictures of nobody else's; how many there must be, and how long they last, only the source tells."""
    return ExpectedClip(
        has_video=True,
        has_audio=False,
        shortest_seconds=0.0,
        longest_seconds=page.lasting_seconds + TOLERANCE_SECONDS,
        frames_before_seconds=page.past_seconds,
    )


def expect_copy(probe: Probe, told: ClipRange) -> ExpectedClip:
    """`told` is what the copy says of itself; it must be true, and the sound's last packet may ring on."""
    tolerance = max(_frame_seconds(probe), TOLERANCE_SECONDS)
    return ExpectedClip(
        has_video=probe.video is not None,
        has_audio=probe.audio is not None,
        shortest_seconds=max(0.0, told.duration_seconds - tolerance),
        longest_seconds=told.duration_seconds + tolerance,
    )


def expect_same(clip: ClipFile) -> ExpectedClip:
    """The same clip once more, with other pixels."""
    tolerance = max(clip.duration_seconds / max(1, clip.frames), TOLERANCE_SECONDS)
    return ExpectedClip(
        has_video=clip.has_video,
        has_audio=clip.has_audio,
        shortest_seconds=max(0.0, clip.duration_seconds - tolerance),
        longest_seconds=clip.duration_seconds + tolerance,
    )


def first_frame_by(probe: Probe, wanted: ClipRange) -> float:
    """When in the clip a picture must be on display: late only where the source's video starts late."""
    late = max(0.0, probe.video.start_seconds - wanted.start_seconds) if probe.video is not None else 0.0
    return late + max(2 * _frame_seconds(probe), FIRST_FRAME_SECONDS)


def picture_lasts(facts: ClipFacts, probe: Probe, wanted: ClipRange) -> bool:
    """Is a picture shown up to the end, as far as the clip itself tells?"""
    tolerance = max(_frame_seconds(probe), TOLERANCE_SECONDS)
    return (facts.picture_end_seconds or 0.0) >= wanted.duration_seconds - tolerance


def _frame_seconds(probe: Probe) -> float:
    return 1 / probe.video.fps if probe.video is not None and probe.video.fps else 0.0
