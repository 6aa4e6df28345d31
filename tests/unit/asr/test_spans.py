"""Where a recording is cut for the engine."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from worker.asr.spans import (
    FRAME_SECONDS,
    LONG_PAUSE_SECONDS,
    MARGIN_SECONDS,
    MAX_SPAN_SECONDS,
    MIN_SPAN_SECONDS,
    Span,
    find_spans,
    frame_levels,
)

LOUD, QUIET, SILENT = -20.0, -50.0, -120.0


def levels(*parts: tuple[float, float]) -> NDArray[np.float32]:
    """(seconds, dBFS) parts, one after the other."""
    return np.concatenate([np.full(frames(seconds), level, dtype=np.float32) for seconds, level in parts])


def frames(seconds: float) -> int:
    return round(seconds / FRAME_SECONDS)


def test_full_scale_square_wave_is_zero_db_and_digital_silence_the_floor() -> None:
    wave = np.array([-32768] * 100 + [0] * 100, dtype=np.int16)

    assert frame_levels(wave, 100).tolist() == pytest.approx([0.0, -120.0])


def test_half_a_frame_at_the_end_is_left_out() -> None:
    assert len(frame_levels(np.zeros(250, dtype=np.int16), 100)) == 2


def test_nothing_and_silence_have_no_spans() -> None:
    assert find_spans(np.empty(0, dtype=np.float32)) == []
    assert find_spans(levels((60, SILENT))) == []


def test_silence_around_speech_is_dropped_but_for_a_margin() -> None:
    [span] = find_spans(levels((10, SILENT), (5, LOUD), (10, SILENT)))

    assert span == Span(frames(10 - MARGIN_SECONDS), frames(15 + MARGIN_SECONDS))


def test_short_pause_keeps_the_sentence_together() -> None:
    assert len(find_spans(levels((3, LOUD), (LONG_PAUSE_SECONDS - 0.1, SILENT), (3, LOUD)))) == 1


def test_long_pause_parts_two_stretches() -> None:
    assert len(find_spans(levels((3, LOUD), (LONG_PAUSE_SECONDS + 0.1, SILENT), (3, LOUD)))) == 2


def test_long_speech_is_cut_in_the_middle_of_its_quietest_pause() -> None:
    first, second = find_spans(levels((8, LOUD), (0.4, QUIET), (8, LOUD)))

    assert first.end == second.start
    assert first.end * FRAME_SECONDS == pytest.approx(8.2, abs=0.15)


def test_quiet_recording_is_still_heard() -> None:
    assert find_spans(levels((5, -58.0))) == [Span(0, frames(5))]


@given(st.lists(st.tuples(st.floats(0.02, 40), st.sampled_from([LOUD, QUIET, SILENT])), min_size=1, max_size=12))
def test_spans_are_ordered_disjoint_inside_and_never_too_long(parts: list[tuple[float, float]]) -> None:
    recording = levels(*parts)
    spans = find_spans(recording)

    assert all(span.start < span.end <= span.start + frames(MAX_SPAN_SECONDS) for span in spans)
    assert all(before.end <= after.start for before, after in pairwise(spans))
    assert all(span.start >= 0 and span.end <= len(recording) for span in spans)
    heard = {frame for span in spans for frame in range(span.start, span.end)}
    assert heard.issuperset(np.flatnonzero(recording == LOUD).tolist())


@pytest.mark.parametrize("pause_at", [1, 6, 11, 11.5])
@pytest.mark.parametrize("seconds", [12.1, 13, 18, 24.5])
def test_no_piece_of_long_speech_is_too_short_to_recognise(seconds: float, pause_at: float) -> None:
    spans = find_spans(levels((pause_at, LOUD), (0.4, QUIET), (seconds - pause_at - 0.4, LOUD)))

    assert len(spans) > 1
    assert min(span.end - span.start for span in spans) >= frames(MIN_SPAN_SECONDS)
