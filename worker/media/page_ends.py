"""Whether a page has all that its source shows in it; neighbours cannot make up for what one of them lost."""

from typing import Final

from worker.domain.media import Probe
from worker.errors import OutputCorrupt
from worker.media.borders import Border, tick_of
from worker.media.expectation import SOURCE_END_SECONDS, TOLERANCE_SECONDS
from worker.media.ordering import BEFORE_END_SECONDS, Order
from worker.media.timeline import TICKS_PER_SECOND, PageTimes, first_tick
from worker.media.verify import ClipFacts

#: of a frame: a packet may hold the second half of one (interlaced), or nothing to be shown (VP8), but never one more
GRACE_FRAMES: Final = 0.75
#: but no more than this: an average rate says little about slides
GRACE_SECONDS: Final = 0.04


def is_empty(order: Order, probe: Probe, start: Border, end: Border) -> bool:
    """Proved, not guessed: no picture comes up between both borders, and the source goes on behind them."""
    assert probe.video is not None, "only pictures are cut in pages"
    if end.before_seconds is not None:
        comes_up = tick_of(end.before_seconds) >= first_tick(order.span.start_seconds, probe.video.fps)
    else:
        # packets without display times tell nothing
        comes_up = end.behind_seconds is None and probe.video.start_seconds < order.span.end_seconds
    return not comes_up and start.before_seconds == end.before_seconds and _goes_on(order, probe, end)


def opens_behind(order: Order, facts: ClipFacts, start: Border, *, grace_seconds: float | None = None) -> bool:
    """Does the source show a picture of this page before the file does?"""
    if start.behind_seconds is None or facts.first_frame_seconds is None:
        return False
    grace = _grace_seconds(order) if grace_seconds is None else grace_seconds
    return _zero_seconds(order) + facts.first_frame_seconds > start.behind_seconds + grace


def refuse_lost_end(order: Order, probe: Probe, facts: ClipFacts, end: Border) -> None:
    if end.before_seconds is None or facts.last_frame_seconds is None:
        return
    last = _zero_seconds(order) + facts.last_frame_seconds
    if end.before_seconds > last + _grace_seconds(order):
        raise OutputCorrupt(
            f"{order.path.name} shows its last picture at {last:.3f} s of the source "
            f"instead of {end.before_seconds:.3f} s"
        )
    if not _goes_on(order, probe, end):
        raise OutputCorrupt(
            f"{order.path.name} should reach {order.span.end_seconds:.3f} s of the source, "
            f"which ends at {end.reached_seconds:.3f} s"
        )


def _goes_on(order: Order, probe: Probe, end: Border) -> bool:
    """A source that broke off must not pass for one that stands still."""
    return end.reached_seconds >= earliest_end(probe, order.span.end_seconds)


def earliest_end(probe: Probe, end_seconds: float) -> float:
    """How far a source has to go for a span that ends there; containers promise too much of their own end."""
    frame = 1 / probe.video.fps if probe.video is not None and probe.video.fps else 0.0
    missing = SOURCE_END_SECONDS if end_seconds > probe.duration_seconds - SOURCE_END_SECONDS else 0.0
    return end_seconds - missing - max(frame, TOLERANCE_SECONDS)


def _grace_seconds(order: Order) -> float:
    video = order.probe.video
    frames = GRACE_FRAMES / video.fps if video is not None and video.fps else 0.0
    return max(min(frames, GRACE_SECONDS), BEFORE_END_SECONDS)


def _zero_seconds(order: Order) -> float:
    page: PageTimes | None = order.recipe.page
    assert page is not None, "pages tell where their zero lies"
    return page.zero_tick / TICKS_PER_SECOND
