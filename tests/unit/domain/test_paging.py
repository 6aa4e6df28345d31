"""Page arithmetic: borders and chains cover everything once, whatever the range."""

from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from worker.domain.job import JobId
from worker.domain.media import ClipRange, VideoStream
from worker.domain.paging import (
    HEARING_STEP_SECONDS,
    MOST_PAGES,
    PAGE_QUEUE,
    Chain,
    PageKind,
    PageRef,
    chains_of,
    heard_span,
    page_borders,
    page_span,
    parse_page,
)
from worker.errors import InvalidRequest

RUN = JobId(UUID(int=7))
starts = st.floats(0, 100_000, allow_subnormal=False)
lengths = st.floats(0.001, 40_000)
page_lengths = st.floats(1, 3600)
rates = st.sampled_from([None, 1.0, 23.976023976023978, 25.0, 29.97002997002997, 60.0, 240.0]) | st.floats(0.05, 300)


def video(fps: float | None, start: float = 0.0) -> VideoStream:
    return VideoStream("h264", 320, 180, fps, start_seconds=start)


@given(starts, lengths, page_lengths, st.none() | rates.map(video))
def test_borders_cover_the_range_without_gap_or_overlap(
    start: float, length: float, page_seconds: float, stream: VideoStream | None
) -> None:
    assume(length / page_seconds < 5000)
    wanted = ClipRange(start, start + length)
    borders = page_borders(wanted, stream, page_seconds=page_seconds)
    assert (borders[0], borders[-1]) == (wanted.start_seconds, wanted.end_seconds)
    assert all(before < after for before, after in pairwise(borders))


@given(starts, lengths, page_lengths)
def test_pages_are_equally_long_and_none_longer_than_asked(start: float, length: float, page_seconds: float) -> None:
    assume(length / page_seconds < 5000)
    wanted = ClipRange(start, start + length)
    borders = page_borders(wanted, None, page_seconds=page_seconds)
    made = [after - before for before, after in pairwise(borders)]
    assert max(made) - min(made) < 1e-6
    assert max(made) <= max(page_seconds, length / MOST_PAGES) + 1e-6
    assert len(made) == 1 or len(made) - 1 < length / page_seconds


@given(starts, st.floats(10, 10_000), st.floats(5, 600), st.floats(1, 240), st.floats(0, 3))
def test_borders_lie_in_the_middle_between_two_frames(
    start: float, length: float, page_seconds: float, fps: float, first_frame: float
) -> None:
    wanted = ClipRange(start, start + length)
    even = page_borders(wanted, None, page_seconds=page_seconds)
    borders = page_borders(wanted, video(fps, first_frame), page_seconds=page_seconds)
    assert len(borders) == len(even)
    for border, ideal in zip(borders[1:-1], even[1:-1], strict=True):
        frames = (border - first_frame) * fps
        assert abs(frames - int(frames // 1) - 0.5) < 1e-3
        assert abs(border - ideal) <= 0.5 / fps + 1e-6


@pytest.mark.parametrize(
    ("length", "page_seconds", "pages"),
    [(60.0, 60.0, 1), (60.0, 20.0, 3), (60.000001, 20.0, 4), (0.3, 0.1, 3), (0.04, 60.0, 1), (86_400.0, 60.0, 1440)],
)
def test_how_many_pages_there_are(length: float, page_seconds: float, pages: int) -> None:
    assert len(page_borders(ClipRange(0.0, length), None, page_seconds=page_seconds)) == pages + 1


def test_pages_of_less_than_a_frame_are_joined() -> None:
    borders = page_borders(ClipRange(0.0, 10.0), video(0.5), page_seconds=0.5)
    assert borders == (0.0, 1.0, 3.0, 5.0, 7.0, 9.0, 10.0)


@given(st.integers(1, 3000), st.integers(1, 64))
def test_chains_hold_every_page_once_in_order_and_are_equally_long(pages: int, partitions: int) -> None:
    chains = chains_of(PageKind.PICTURES, pages, partitions=partitions, heights=(0, 360))
    assert [page for chain in chains for page in range(chain.first, chain.past)] == list(range(pages))
    assert len(chains) == min(pages, partitions)
    sizes = {chain.past - chain.first for chain in chains}
    assert max(sizes) - min(sizes) <= 1
    assert {chain.heights for chain in chains} == {(0, 360)}


def test_one_chain_more_than_pages_is_one_too_many() -> None:
    assert chains_of(PageKind.SPEECH, 1, partitions=8) == [Chain(PageKind.SPEECH, 0, 1)]


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=20), st.floats(0, 30), st.data())
def test_neighbours_hear_each_other_but_nothing_beyond_the_clip(
    lengths: list[float], overlap: float, data: st.DataObject
) -> None:
    borders = [3.0]
    for length in lengths:
        borders.append(borders[-1] + length)
    offset = data.draw(st.integers(0, len(lengths) - 1))
    page, heard = page_span(tuple(borders), offset), heard_span(tuple(borders), offset, overlap_seconds=overlap)
    assert borders[0] <= heard.start_seconds <= page.start_seconds
    assert page.end_seconds <= heard.end_seconds <= borders[-1]
    ideal = max(borders[0], page.start_seconds - overlap)
    assert ideal - HEARING_STEP_SECONDS - 1e-9 <= heard.start_seconds <= ideal + 1e-9
    steps = (heard.start_seconds - borders[0]) / HEARING_STEP_SECONDS
    assert abs(steps - round(steps)) < 1e-6


@given(st.integers(0, 500), st.integers(0, 100_000))
def test_same_page_has_the_same_job_and_comes_back_from_its_message(partition: int, offset: int) -> None:
    page = PageRef(RUN, partition, offset)
    assert parse_page(dict(page.message)) == page
    assert parse_page(dict(page.message)).job_id == page.job_id


def test_different_pages_have_different_jobs() -> None:
    pages = [
        PageRef(run, partition, offset)
        for run in (RUN, JobId(UUID(int=8)))
        for partition in range(12)
        for offset in range(12)
    ]
    assert len({page.job_id for page in pages} | {page.named(":1") for page in pages}) == 2 * len(pages)


@pytest.mark.parametrize(
    "message",
    [
        None,
        [],
        "page",
        {},
        {"source": "https://example.org/talk.mp4"},
        {"run": str(RUN), "partition": 0},
        {"run": str(RUN), "partition": "0", "offset": 0},
        {"run": str(RUN), "partition": 0, "offset": 1.0},
        {"run": str(RUN), "partition": True, "offset": False},
        {"run": str(RUN), "partition": -1, "offset": 0},
        {"run": str(RUN), "partition": 0, "offset": 2**31},
        {"run": 7, "partition": 0, "offset": 0},
        {"run": "seven", "partition": 0, "offset": 0},
        {"run": None, "partition": 0, "offset": None},
    ],
)
def test_junk_is_refused(message: Any) -> None:
    with pytest.raises(InvalidRequest):
        parse_page(message)


def test_whoever_sends_a_clip_to_the_queue_of_pages_is_told_where_it_belongs() -> None:
    with pytest.raises(InvalidRequest, match=f"{PAGE_QUEUE} is for pages .* use queue clip"):
        parse_page({"source": "https://example.org/talk.mp4", "end": 3})


def test_no_job_has_more_pages_than_can_be_kept_in_mind() -> None:
    borders = page_borders(ClipRange(0.0, 36_000.0), None, page_seconds=1.0)
    assert len(borders) == MOST_PAGES + 1
    assert borders[-1] == 36_000.0
