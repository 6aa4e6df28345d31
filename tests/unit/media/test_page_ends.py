from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from worker.domain.media import AudioStream, ClipRange, Mode, Probe, VideoStream
from worker.errors import OutputCorrupt
from worker.media import argv
from worker.media.borders import Border, tick_of
from worker.media.encoding import CPU, Encoding
from worker.media.ordering import Order
from worker.media.page_ends import is_empty, opens_behind, refuse_lost_end
from worker.media.timeline import page_times
from worker.media.verify import ClipFacts

PROBE = Probe("mov,mp4", 60.0, 0.0, VideoStream("h264", 160, 90, 25.0), AudioStream("aac", 48_000, 1))
PAGE = ClipRange(20.0, 30.0)


def order(probe: Probe = PROBE) -> Order:
    times = page_times(ClipRange(0.0, 60.0), PAGE, 25.0)
    recipe = argv.Recipe(Encoding(), CPU, page=times)
    source: Any = None
    return Order(source, probe, PAGE, Mode.EXACT, Path("/w/page.mp4"), recipe)


def facts(first: float, last: float) -> ClipFacts:
    # the file's zero lies a margin before the page
    return ClipFacts(1, 10.0, True, False, 250, first + 0.001, last + 0.001)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (Border(18.0, 34.0, 34.0), Border(18.0, 34.0, 34.0), True),
        (Border(18.0, 22.0, 34.0), Border(22.0, 34.0, 34.0), False),
        # only sound goes on
        (Border(18.0, None, 31.0), Border(18.0, None, 31.0), True),
        (Border(18.0, None, 28.0), Border(18.0, None, 28.0), False),
        # pictures that start later, and packets that do not tell
        (Border(None, 34.0, 34.0), Border(None, 34.0, 34.0), True),
        (Border(None, None, 34.0), Border(None, None, 34.0), False),
    ],
)
def test_page_is_empty_only_where_the_source_goes_on_without_a_picture(start, end, expected):
    assert is_empty(order(), PROBE, start, end) is expected


def test_pictures_that_start_far_behind_the_page_leave_it_empty():
    late = replace(PROBE, video=replace(PROBE.video, start_seconds=45.0))
    nothing = Border(None, None, 34.0)
    assert is_empty(order(late), late, nothing, nothing)


@pytest.mark.parametrize(
    ("first", "behind", "expected"), [(0.0, 20.0, False), (0.04, 20.0, True), (0.02, 20.0, False), (5.0, None, False)]
)
def test_page_opens_behind_its_source_by_a_frame_or_more(first, behind, expected):
    assert opens_behind(order(), facts(first, 9.96), Border(19.96, behind, 30.0)) is expected


def test_whole_page_passes_and_one_that_lost_a_frame_does_not():
    refuse_lost_end(order(), PROBE, facts(0.0, 9.96), Border(29.96, 30.0, 30.04))
    refuse_lost_end(order(), PROBE, facts(0.0, 9.96), Border(None, None, 0.0))
    with pytest.raises(OutputCorrupt, match=r"last picture at 29\.920 s of the source instead of 29\.960 s"):
        refuse_lost_end(order(), PROBE, facts(0.0, 9.92), Border(29.96, 30.0, 30.04))
    with pytest.raises(OutputCorrupt, match=r"should reach 30\.000 s of the source, which ends at 25\.040 s"):
        refuse_lost_end(order(), PROBE, facts(0.0, 5.0), Border(25.0, None, 25.04))


@pytest.mark.parametrize(("seconds", "tick"), [(0.0, 0), (1 / 30, 4000), (0.5 / 120_000, 1), (-0.00001, -1)])
def test_times_are_rounded_to_ticks_as_ffmpeg_does(seconds, tick):
    assert tick_of(seconds) == tick
