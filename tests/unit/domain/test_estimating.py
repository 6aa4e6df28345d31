"""Times for words, where an engine gives none."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.domain.estimating import spread


def test_words_share_the_time_by_their_length() -> None:
    one, two = spread("a ccc", [(10, 16)])
    assert (one.text, one.start_seconds, one.end_seconds) == ("a", 10, pytest.approx(12))
    assert (two.text, two.start_seconds, two.end_seconds) == ("ccc", pytest.approx(12), 16)
    assert one.is_estimated
    assert one.confidence is None


def test_nobody_speaks_in_a_pause() -> None:
    words = spread("one two six ten", [(0, 2), (10, 12)])
    assert [(word.start_seconds, word.end_seconds) for word in words] == [(0, 1), (1, 2), (10, 11), (11, 12)]


@pytest.mark.parametrize(("text", "speech"), [("", [(0, 1)]), ("word", []), ("word", [(3, 3)])])
def test_nothing_to_spread_or_nowhere_gives_no_words(text: str, speech: list[tuple[float, float]]) -> None:
    assert spread(text, speech) == ()


@given(
    st.lists(st.text("abcdefgh", min_size=1, max_size=15), min_size=1, max_size=30),
    st.lists(st.tuples(st.floats(0.05, 3), st.floats(0.05, 9)), min_size=1, max_size=6),
)
def test_every_word_keeps_its_place_in_order_and_in_speech(texts: list[str], pauses: list[tuple[float, float]]) -> None:
    speech, at = [], 0.0
    for pause, length in pauses:
        speech.append((at + pause, at + pause + length))
        at += pause + length
    words = spread(" ".join(texts), speech)
    assert [word.text for word in words] == texts
    for word in words:
        assert word.start_seconds <= word.end_seconds
        assert any(start - 1e-9 <= word.start_seconds and word.end_seconds <= end + 1e-9 for start, end in speech)
    assert all(one.end_seconds <= other.start_seconds + 1e-9 for one, other in pairwise(words))
