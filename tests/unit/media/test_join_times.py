from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.media.join_times import Disorder, track_times


@st.composite
def pages(draw) -> list[list[int]]:
    """Pages as encoders make them: a keyframe that is shown first, then groups that end with what is decoded first."""
    tick, made = draw(st.integers(0, 10**6)), list[list[int]]()
    for _ in range(draw(st.integers(1, 6))):
        gaps = draw(st.lists(st.integers(1, 3_000_000), min_size=1, max_size=12))
        shown = []
        for gap in gaps:
            shown.append(tick)
            tick += gap
        decoded, rest = shown[:1], shown[1:]
        while rest:
            group, rest = rest[: (size := draw(st.integers(1, 5)))], rest[size:]
            decoded += [group[-1], *draw(st.permutations(group[:-1]))]
        made.append(decoded)
    return made


@given(pages(), st.integers(0, 4), st.integers(1, 10**7))
def test_pictures_are_decoded_in_order_and_before_they_are_shown(made, depth, beyond):
    decoded = [tick for page in made for tick in page]
    past = max(decoded) + beyond
    times = track_times(made, depth=depth, past=past)
    stored = [times.stored(number) for number in range(len(decoded))]
    assert all(one < two for one, two in pairwise(stored))
    assert all(dts <= pts for dts, pts in zip(stored, decoded, strict=True))
    assert times.depth >= depth


@given(pages(), st.integers(1, 10**7))
def test_pictures_are_shown_one_after_the_other_without_a_gap(made, beyond):
    shown = sorted(tick for page in made for tick in page)
    times = track_times(made, depth=0, past=shown[-1] + beyond)
    assert list(times.shown) == shown
    assert [tick + times.lasting(tick) for tick in shown] == [*shown[1:], shown[-1] + beyond]


@given(pages())
def test_depth_is_what_some_picture_needs(made):
    times = track_times(made, depth=0, past=0)
    decoded = [tick for page in made for tick in page]
    if times.depth:
        shallower = [*([times.shown[0] - 1] * (times.depth - 1)), *times.shown]
        assert any(dts > pts for dts, pts in zip(shallower, decoded, strict=False))


def test_usual_track_is_timed_as_encoders_do_it():
    frame, made = 4800, [[0, 14400, 4800, 9600], [19200, 28800, 24000]]
    times = track_times(made, depth=2, past=33_600)
    assert [times.stored(number) for number in range(7)] == [frame * number for number in (-2, -1, 0, 1, 2, 3, 4)]


def test_single_picture_is_decoded_before_it_is_shown():
    times = track_times([[100]], depth=2, past=4900)
    assert (times.stored(0), times.lasting(100)) == (100 - 2 * 4800, 4800)


def test_last_picture_is_shown_for_a_moment_at_least():
    assert track_times([[0, 10]], depth=0, past=5).lasting(10) == 1


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ([[0, 10], [10, 20]], "page 1 begins at tick 10, before the one before it ends at 10"),
        ([[0, 10], [5, 20]], "page 1 begins at tick 5"),
        ([[0, 10, 10]], "page 0 shows two pictures at once"),
        ([], "no page"),
        ([[]], "no page"),
    ],
)
def test_pages_that_do_not_follow_each_other_are_refused(made, message):
    with pytest.raises(Disorder, match=message):
        track_times(made, depth=0, past=0)
