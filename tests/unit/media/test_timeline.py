from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.media.timeline import TICKS_PER_SECOND, first_tick, margin_ticks, past_last_tick

RATES = [Fraction(24000, 1001), Fraction(24), Fraction(25), Fraction(30000, 1001), Fraction(30), Fraction(50),
         Fraction(60000, 1001), Fraction(60), Fraction(120)]  # fmt: skip


@pytest.mark.parametrize("rate", RATES)
def test_every_usual_frame_falls_on_a_tick(rate):
    assert (TICKS_PER_SECOND / rate).denominator == 1


@given(st.sampled_from(RATES), st.integers(1, 500_000))
def test_start_on_a_frame_keeps_it_and_end_on_a_frame_leaves_it(rate, number):
    tick = number * TICKS_PER_SECOND / rate
    for written in (float(number / rate), round(float(number / rate), 3)):
        assert first_tick(written, float(rate)) <= tick < past_last_tick(float((number + 1) / rate), float(rate))
        assert past_last_tick(written, float(rate)) <= tick


@given(st.sampled_from(RATES), st.integers(1, 500_000))
def test_start_between_frames_leaves_the_earlier_one(rate, number):
    between = float((number + Fraction(1, 2)) / rate)
    assert number * TICKS_PER_SECOND / rate < first_tick(between, float(rate)) <= (number + 1) * TICKS_PER_SECOND / rate


@given(st.floats(0, 86_400), st.sampled_from([None, 24.0, 29.97, 240.0, 1000.0]))
def test_neighbouring_ranges_neither_share_nor_lose_a_tick(seconds, fps):
    assert past_last_tick(seconds, fps) == first_tick(seconds, fps)


def test_margin_stays_within_a_quarter_frame():
    assert [margin_ticks(fps) for fps in (None, 25.0, 1000.0)] == [120, 120, 30]
