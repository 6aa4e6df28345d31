"""The long-media benchmark's parts on a few seconds: what it would see is tested, never how fast anything is."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.pages.outputs import Decoded, compare, decode
from bench.pages.source import make_lecture

TEXTS = ("it was the best of times", "it was the best of times")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Decoded:
    path = tmp_path_factory.mktemp("lecture") / "lecture.mp4"
    return decode(make_lecture(path, seconds=6, size=(160, 90), fps=10))


def test_lecture_has_numbered_frames_and_somebody_reads(whole: Decoded) -> None:
    assert (whole.frames, whole.misnumbered, whole.rate) == (60, 0, 48_000)
    assert whole.samples.size == pytest.approx(6 * 48_000, abs=2048)
    assert np.abs(whole.samples).max() > 0.05


def test_lecture_is_the_same_every_time(tmp_path: Path) -> None:
    paths = [make_lecture(tmp_path / name, seconds=2, size=(160, 90), fps=10) for name in ("one.mp4", "two.mp4")]
    first, second = [decode(path) for path in paths]
    assert first.order == second.order
    assert np.array_equal(first.samples, second.samples)


def test_equal_outputs_are_equal(whole: Decoded) -> None:
    found = compare(whole, whole, [3.0], TEXTS)
    assert (found.frames_apart, found.misnumbered, found.is_same_order, found.samples_apart) == (0, 0, True, 0)
    assert (found.loudest_at_borders, found.loudest, found.words_percent) == (0, 0, 0)


def test_a_click_at_a_border_a_lost_frame_and_another_word_are_seen(whole: Decoded) -> None:
    samples = whole.samples.copy()
    samples[3 * 48_000 + 5] += 0.5
    other = replace(whole, frames=59, order="other", misnumbered=1, samples=samples[:-10])
    found = compare(whole, other, [3.0], (TEXTS[0], "it was the worst of times"))
    assert (found.frames_apart, found.misnumbered, found.is_same_order, found.samples_apart) == (1, 1, False, 10)
    assert found.loudest_at_borders == pytest.approx(0.5)
    assert found.words_percent == pytest.approx(100 / 6)
    assert compare(whole, other, [1.0], TEXTS).loudest_at_borders == 0
