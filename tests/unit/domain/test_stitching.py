"""What overlapping windows heard becomes one text: no word lost, none doubled."""

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from worker.domain.stitching import Piece, stitch
from worker.domain.transcript import Segment, Word


def piece(start: float, end: float, *words: tuple[float, str], lasts: float = 0.3) -> Piece:
    """Words with the time they begin."""
    said = tuple(Word(at, at + lasts, text) for at, text in words)
    segment = Segment(said[0].start_seconds, said[-1].end_seconds, " ".join(word.text for word in said), said)
    return Piece(start, end, (segment,))


def text(*pieces: Piece) -> str:
    return " ".join(segment.text for segment in stitch(pieces))


def test_windows_that_do_not_overlap_are_left_alone() -> None:
    one, two = piece(0, 5, (1, "Hello"), (2, "there.")), piece(5, 9, (6, "Hello"), (7, "again."))
    assert stitch([one, two]) == (*one.segments, *two.segments)


def test_words_that_both_heard_stay_once_and_a_torn_one_goes() -> None:
    left = piece(0, 10, (7, "in"), (8, "the"), (8.5, "superlative"), (9.4, "degr"))
    right = piece(8, 18, (8, "live"), (8.5, "superlative"), (9.4, "degree"), (10, "of"))
    assert text(left, right) == "in the superlative degree of"


def test_different_spelling_of_the_same_word_is_the_same_word() -> None:
    left = piece(0, 10, (8, "the"), (8.8, "Noisiest,"), (9.3, "author"))
    right = piece(8, 18, (8.1, "a"), (8.9, "noisiest"), (9.4, "authorities"))
    assert text(left, right) == "the Noisiest, authorities"


def test_the_same_word_said_twice_is_kept_twice() -> None:
    left = piece(0, 10, (5, "never"), (6, "say"), (9, "never"))
    right = piece(8, 18, (9, "never"), (11.5, "never"))
    assert text(left, right) == "never say never never"


def test_without_a_common_word_the_middle_of_the_overlap_decides() -> None:
    left, right = piece(0, 10, (8.2, "left"), (9.4, "lost")), piece(8, 18, (8.2, "gone"), (9.4, "right"))
    assert text(left, right) == "left right"


def test_one_side_that_heard_nothing_leaves_the_other_alone() -> None:
    left = piece(0, 10, (8.2, "left"), (9.8, "over"))
    assert stitch([left, Piece(8, 18, ())]) == left.segments
    assert stitch([Piece(0, 10, ()), piece(8, 18, (8.5, "all"))])[0].text == "all"


def test_times_of_both_sides_are_brought_in_order() -> None:
    left = piece(0, 10, (8, "a"), (9, "b"), lasts=1.0)
    right = piece(8, 18, (8.9, "b"), (9.1, "c"), lasts=0.5)
    words = [word for segment in stitch([left, right]) for word in segment.words]
    assert [word.text for word in words] == ["a", "b", "c"]
    assert all(one.end_seconds <= two.start_seconds for one, two in pairwise(words))
    assert all(word.start_seconds <= word.end_seconds for word in words)


def test_languages_without_spaces_get_none() -> None:
    word = [Word(at, at + 0.4, sign) for at, sign in ((7.0, "今"), (8.2, "日"), (8.9, "は"), (9.5, "晴"))]
    left = Piece(0, 10, (Segment(7, 10, "今日は晴", tuple(word)),))
    right = Piece(8, 18, (Segment(8, 12, "日は晴れ", (*word[1:], Word(10.1, 10.5, "れ"))),))
    assert "".join(segment.text for segment in stitch([left, right])) == "今日は晴れ"


@given(
    st.lists(
        st.sampled_from(["the", "of", "a", "and", "we", "go", "up", "on", "it", "is", "no", "so"]),
        min_size=4,
        max_size=60,
    ),
    st.floats(0.2, 0.6),
    st.integers(0, 2**32),
    st.floats(0, 0.25),
)
def test_no_word_is_lost_or_doubled_whatever_was_said(said: list[str], pace: float, seed: int, jitter: float) -> None:
    """Windows that overlap by two seconds, each hearing all that is said in it, at times that are a little off."""
    lasts = len(said) * pace
    assume(lasts > 4)
    offsets = [((seed >> (n % 32)) & 1) * jitter for n in range(len(said))]
    truth = [Word(n * pace, (n + 1) * pace, each) for n, each in enumerate(said)]
    pieces, start = [], 0.0
    while start < lasts:
        end = start + 6.0
        heard = tuple(
            Word(word.start_seconds + offsets[n], word.end_seconds + offsets[n], word.text)
            for n, word in enumerate(truth)
            if word.start_seconds >= start and word.end_seconds <= end
        )
        if heard:
            pieces.append(
                Piece(
                    start,
                    end,
                    (Segment(heard[0].start_seconds, heard[-1].end_seconds, " ".join(w.text for w in heard), heard),),
                )
            )
        start += 4.0
    assert [word.text for segment in stitch(pieces) for word in segment.words] == said


@pytest.mark.parametrize("count", [0, 1])
def test_few_pieces(count: int) -> None:
    pieces = [piece(0, 5, (1, "word"))][:count]
    assert len(stitch(pieces)) == count
