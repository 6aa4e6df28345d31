from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.media.smart.order import Unfit
from worker.media.smart.plan import DecodeTimes, copyable


@pytest.mark.parametrize(
    ("pts", "past_end", "count"),
    [
        ([0, 3, 1, 2, 6, 4, 5], 7, 7),
        ([0, 3, 1, 2, 6, 4, 5], 6, 4),
        ([0, 3, 1, 2, 6, 4, 5], 3, 1),
        # frames that are shown before the keyframe are copied only together with it
        ([10, 8, 9, 13, 11, 12], 11, 3),
        ([10, 8, 9, 13, 11, 12], 10, 0),
    ],
)
def test_only_packets_without_a_hole_in_what_they_show_are_copied(pts, past_end, count):
    assert copyable(pts, past_end) == count


@given(st.lists(st.integers(1, 4), min_size=1, max_size=12))
def test_decode_times_rise_and_never_lie_behind_display(steps):
    shown, at = [0], 0
    for step in steps:
        # a mini group: the last of it is stored first
        shown += [at + step * 10, *range(at + 10, at + step * 10, 10)]
        at += step * 10
    times = DecodeTimes(1, 10)
    decoded = [times.next(pts) for pts in shown]
    assert all(one < two for one, two in pairwise(decoded))
    assert all(dts <= pts for dts, pts in zip(decoded, shown, strict=True))


def test_an_order_that_was_not_announced_is_refused():
    times = DecodeTimes(0, 10)
    times.next(30)
    with pytest.raises(Unfit, match="order"):
        times.next(10)
