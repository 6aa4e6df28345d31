"""Joins what was heard in windows that overlap: every word once, none lost."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from worker.domain.transcript import Segment, Word

#: what two windows say of the time of one word differs by so much at most; further apart it was said twice
SAME_WORD_SECONDS = 0.4
#: where times were estimated
SAME_ESTIMATED_SECONDS = 1.5
#: how many words of a match a second between its two sides is worth
WORDS_A_SECOND = 4.0

_LETTERS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Piece:
    """What was heard in one window. All times on the recording's clock."""

    start_seconds: float
    end_seconds: float
    segments: tuple[Segment, ...]


def stitch(pieces: Sequence[Piece]) -> tuple[Segment, ...]:
    """`pieces` in order, overlapping at most their neighbours. Segments must have words."""
    segments: list[Segment] = []
    for number, piece in enumerate(pieces):
        mine = list(piece.segments)
        if number and segments and mine and piece.start_seconds < pieces[number - 1].end_seconds:
            segments, mine = _spliced(segments, mine, piece.start_seconds, pieces[number - 1].end_seconds)
        segments += mine
    return tuple(segments)


def _spliced(
    left: list[Segment], right: list[Segment], since: float, until: float
) -> tuple[list[Segment], list[Segment]]:
    """Both heard the time from `since` to `until`: left goes on to the splice, right follows from there."""
    early = [word for segment in left for word in segment.words]
    late = [word for segment in right for word in segment.words]
    kept, begun = _splice(early, late, since, until)
    head, tail = _first_words(left, kept), _last_words(right, len(late) - begun)
    return _not_beyond(head, tail), _not_before(head, tail)


def _splice(early: Sequence[Word], late: Sequence[Word], since: float, until: float) -> tuple[int, int]:
    """How many of the early words stay, and how many of the late ones go."""
    # Estimated words may lie a little outside of what both have heard.
    slack = SAME_ESTIMATED_SECONDS
    first = next((n for n, word in enumerate(early) if word.end_seconds > since - slack), len(early))
    last = next((n for n, word in enumerate(late) if word.start_seconds > until + slack), len(late))
    match = _best_match(early, late, range(first, len(early)), range(last))
    if match is not None:
        in_early, in_late, length = match
        # in its middle: at its edges words may be cut in two
        return in_early + (length + 1) // 2, in_late + (length + 1) // 2
    cut = (since + until) / 2
    kept = next((n for n, word in enumerate(early) if _middle(word) >= cut), len(early))
    begun = next((n for n, word in enumerate(late) if _middle(word) >= cut), len(late))
    return kept, begun


def _best_match(early: Sequence[Word], late: Sequence[Word], mine: range, theirs: range) -> tuple[int, int, int] | None:
    """The longest row of words that both heard at about the same time: where it begins in each, and its length."""
    best, best_score = None, 0.0
    for a in mine:
        for b in theirs:
            length, apart = 0, 0.0
            while a + length in mine and b + length in theirs and _is_same(early[a + length], late[b + length]):
                apart += _apart(early[a + length], late[b + length])
                length += 1
            # Who says the same word over and over matches in many ways; the right one is the one at the same time.
            score = length - WORDS_A_SECOND * apart / length if length else 0.0
            if length and (best is None or score > best_score):
                best, best_score = (a, b, length), score
    return best


def _is_same(one: Word, other: Word) -> bool:
    slack = SAME_ESTIMATED_SECONDS if one.is_estimated or other.is_estimated else SAME_WORD_SECONDS
    return _apart(one, other) <= slack and _letters(one.text) == _letters(other.text) != ""


def _apart(one: Word, other: Word) -> float:
    return abs(_middle(one) - _middle(other))


def _letters(text: str) -> str:
    return "".join(_LETTERS.findall(text.casefold()))


def _middle(word: Word) -> float:
    return (word.start_seconds + word.end_seconds) / 2


def _first_words(segments: Sequence[Segment], count: int) -> list[Segment]:
    kept = []
    for segment in segments:
        if count <= 0:
            break
        kept.append(_with_words(segment, segment.words[:count]))
        count -= len(segment.words)
    return kept


def _last_words(segments: Sequence[Segment], count: int) -> list[Segment]:
    kept = []
    for segment in reversed(segments):
        if count <= 0:
            break
        kept.append(_with_words(segment, segment.words[-count:]))
        count -= len(segment.words)
    return kept[::-1]


def _not_beyond(head: list[Segment], tail: Sequence[Segment]) -> list[Segment]:
    """Times of the two sides were found apart from each other: the last word ends before the next one begins."""
    if not head or not tail:
        return head
    words, next_word = head[-1].words, tail[0].words[0]
    last = words[-1]
    if last.end_seconds <= next_word.start_seconds:
        return head
    end = max(last.start_seconds, (last.end_seconds + next_word.start_seconds) / 2)
    return [*head[:-1], _timed(head[-1], (*words[:-1], replace(last, end_seconds=end)))]


def _not_before(head: Sequence[Segment], tail: list[Segment]) -> list[Segment]:
    if not head or not tail:
        return tail
    before = _not_beyond(list(head), tail)[-1].words[-1].end_seconds
    moved = []
    for segment in tail:
        words = []
        for word in segment.words:
            start = max(before, word.start_seconds)
            before = max(start, word.end_seconds)
            words.append(replace(word, start_seconds=start, end_seconds=before))
        moved.append(_timed(segment, tuple(words)))
    return moved


def _timed(segment: Segment, words: tuple[Word, ...]) -> Segment:
    if words == segment.words:
        return segment
    return replace(segment, start_seconds=words[0].start_seconds, end_seconds=words[-1].end_seconds, words=words)


def _with_words(segment: Segment, words: tuple[Word, ...]) -> Segment:
    if words == segment.words:
        return segment
    # Languages that know no spaces between words are not given any.
    space = " " if " " in segment.text.strip() or len(segment.words) == 1 else ""
    return replace(_timed(segment, words), text=space.join(word.text for word in words))
