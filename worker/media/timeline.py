"""The clock clips are cut on: ticks that fit all usual frame rates, so that no float decides a frame."""

from typing import Final

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
