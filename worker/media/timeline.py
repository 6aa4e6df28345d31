"""The clock clips are cut on: ticks that fit all usual frame rates, so that no float decides a frame."""

from dataclasses import dataclass
from typing import Final

from worker.domain.media import ClipRange

#: a whole number of ticks per frame at 23.976, 24, 25, 29.97, 30, 48, 50, 59.94, 60, 100, 119.88 and 120 fps
TICKS_PER_SECOND: Final = 120_000
#: people write milliseconds: 12.346 means the frame at 12.34567, not the one after it
MARGIN_SECONDS: Final = 0.001


def start_tick(seconds: float) -> int:
    return round(seconds * TICKS_PER_SECOND)


def first_tick(start_seconds: float, fps: float | None) -> int:
    """Frames from this tick on belong to a range that starts at `start_seconds`."""
    return start_tick(start_seconds) - margin_ticks(fps)


def past_last_tick(end_seconds: float, fps: float | None) -> int:
    """Frames from this tick on lie behind a range that ends at `end_seconds`; neighbours share no frame."""
    return start_tick(end_seconds) - margin_ticks(fps)


def margin_ticks(fps: float | None) -> int:
    """Never more than a quarter frame, so that one frame at most is pulled in."""
    margin = MARGIN_SECONDS if not fps else min(MARGIN_SECONDS, 0.25 / fps)
    return round(margin * TICKS_PER_SECOND)


@dataclass(frozen=True, slots=True)
class PageTimes:
    """How the file of one page is timed, so that it can be joined with its neighbours' to the tick."""

    #: the file's zero on the container's timeline, and in the clip
    zero_tick: int
    zero_in_clip: int
    #: pictures from here on belong to the next page
    past_tick: int
    #: a picture that stands still is shown beyond its page, up to where the clip ends; from the file's zero
    lasting_ticks: int

    @property
    def past_seconds(self) -> float:
        """From the file's zero."""
        return (self.past_tick - self.zero_tick) / TICKS_PER_SECOND

    @property
    def lasting_seconds(self) -> float:
        return self.lasting_ticks / TICKS_PER_SECOND


def page_times(clip: ClipRange, page: ClipRange, fps: float | None) -> PageTimes:
    """Only a clip's first pictures may lie before its start, and are moved there; a later page begins with its own."""
    clip_zero = start_tick(clip.start_seconds)
    zero = clip_zero if page.start_seconds == clip.start_seconds else first_tick(page.start_seconds, fps)
    return PageTimes(
        zero_tick=zero,
        zero_in_clip=zero - clip_zero,
        past_tick=past_last_tick(page.end_seconds, fps),
        lasting_ticks=start_tick(clip.duration_seconds) - (zero - clip_zero),
    )
