"""Where a recording is cut for an engine."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.asr.base import Window, WindowPolicy
from worker.asr.loudness import FRAME_SECONDS, Levels, frame_levels, quietest_seconds
from worker.asr.voice import Speech
from worker.asr.windows import LONG_PAUSE_SECONDS, MARGIN_SECONDS, OVERLAP_SECONDS, plan_windows

POLICY = WindowPolicy(shortest_seconds=6, longest_seconds=12)
EVEN = np.full(100_000, -20.0, dtype=np.float32)


def plan(*speech: tuple[float, float], levels: Levels = EVEN, lasts: float = 1000.0) -> list[Window]:
    return plan_windows([Speech(*each) for each in speech], levels, POLICY, duration_seconds=lasts)


def edges(windows: list[Window]) -> list[tuple[float, float]]:
    return [(window.start_seconds, window.end_seconds) for window in windows]


def test_nothing_said_gives_no_window() -> None:
    assert plan() == []


def test_short_pauses_stay_inside_a_window_and_long_ones_belong_to_none() -> None:
    windows = plan((5, 7), (8, 10), (10 + LONG_PAUSE_SECONDS + 0.1, 15))
    assert edges(windows) == [
        (5 - MARGIN_SECONDS, 10 + MARGIN_SECONDS),
        (pytest.approx(12.1 - MARGIN_SECONDS), 15 + MARGIN_SECONDS),
    ]
    assert windows[0].speech == ((5, 7), (8, 10))


def test_margins_stay_inside_the_recording() -> None:
    assert edges(plan((0.1, 4.9), lasts=5)) == [(0, 5)]


def test_long_speech_is_cut_in_the_middle_of_its_longest_pause() -> None:
    assert edges(plan((10, 17), (17.2, 19), (19.6, 26))) == [
        (10 - MARGIN_SECONDS, pytest.approx(19.3)),
        (pytest.approx(19.3), 26 + MARGIN_SECONDS),
    ]


def test_speech_without_a_pause_is_cut_where_it_is_quietest_and_heard_twice_there() -> None:
    levels = EVEN.copy()
    levels[round(18 / FRAME_SECONDS) : round(18.3 / FRAME_SECONDS)] = -50
    first, second = plan((10, 26), levels=levels)
    assert first.end_seconds - second.start_seconds == pytest.approx(2 * OVERLAP_SECONDS)
    assert (first.end_seconds + second.start_seconds) / 2 == pytest.approx(18.15, abs=0.1)
    assert first.speech == ((10, first.end_seconds),)


@st.composite
def speeches(draw: st.DrawFn) -> list[tuple[float, float]]:
    found, at = [], 0.0
    for pause, length in draw(st.lists(st.tuples(st.floats(0.1, 4), st.floats(0.1, 60)), max_size=12)):
        found.append((at + pause, at + pause + length))
        at += pause + length
    return found


@given(speeches())
def test_windows_hold_all_speech_and_none_is_too_long(speech: list[tuple[float, float]]) -> None:
    windows = plan(*speech, lasts=2000)
    longest = POLICY.longest_seconds + 2 * max(MARGIN_SECONDS, OVERLAP_SECONDS)
    assert all(window.end_seconds - window.start_seconds <= longest + 1e-6 for window in windows)
    assert all(one.start_seconds < other.start_seconds for one, other in pairwise(windows))
    for start, end in speech:
        for moment in np.linspace(start, end, 7)[1:-1]:
            assert any(window.start_seconds <= moment <= window.end_seconds for window in windows)
    for window in windows:
        assert window.speech
        assert all(window.start_seconds <= a < b <= window.end_seconds for a, b in window.speech)


def test_full_scale_square_wave_is_zero_db_and_digital_silence_the_floor() -> None:
    wave = np.array([-32768] * 100 + [0] * 100 + [0] * 50, dtype=np.int16)
    assert frame_levels(wave, 100).tolist() == pytest.approx([0.0, -120.0])


def test_the_quietest_place_is_not_an_edge_by_accident() -> None:
    levels = np.full(1000, -20.0, dtype=np.float32)
    assert 2 < quietest_seconds(levels, 2, 10) < 10
    assert quietest_seconds(levels, 50, 60) == 50
