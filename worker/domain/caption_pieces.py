"""From a transcript to the pieces that captions are made of: the engine's words, with the text's punctuation."""

import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, pairwise

from worker.domain.caption_lines import Piece, clean, columns, is_unspaced, unbreakable
from worker.domain.transcript import Segment, Transcript


def caption_pieces(transcript: Transcript, *, most: float, until_seconds: float | None) -> list[Piece]:
    """In order, inside the sound, none wider than a line."""
    words = [word for segment in transcript.segments for word in _words(segment) if word.text]
    # segments are sentences: a space follows, but for scripts that have none
    spaced = [_spaced_before(word, following.text) for word, following in pairwise(words)] + words[-1:]
    parts = [part for word in spaced for part in _parts(word, most)]
    return _ordered(parts, until_seconds)


def _words(segment: Segment) -> list[Piece]:
    words = [Piece(word.start_seconds, word.end_seconds, text) for word in segment.words if (text := clean(word.text))]
    if not words:
        return _spread(Piece(segment.start_seconds, segment.end_seconds, ""), clean(segment.text).split())
    return _with_punctuation(words, clean(segment.text)) or [
        *(_spaced_before(word, following.text) for word, following in pairwise(words)),
        words[-1],
    ]


def _with_punctuation(words: list[Piece], text: str) -> list[Piece]:
    """Some engines tell words bare, and punctuation only in the text; nothing where the two do not agree."""
    places, at = list[tuple[int, int]](), 0
    for word in words:
        found = text.find(word.text, at)
        if found < 0 or _has_letters(text[at:found]):
            return []
        at = found + len(word.text)
        places.append((found, at))
    if _has_letters(text[at:]):
        return []
    splits = [0, *(_gap_split(text, left[1], right[0]) for left, right in pairwise(places)), len(text)]
    chunks = [text[first:last] for first, last in pairwise(splits)]
    return [
        replace(word, text=chunk.strip(), is_spaced=chunk.endswith(" "))
        for word, chunk in zip(words, chunks, strict=True)
    ]


def _has_letters(text: str) -> bool:
    return any(char.isalnum() for char in text)


def _gap_split(text: str, start: int, end: int) -> int:
    """Where between two words the left one's share ends: behind a space, or before an opening bracket."""
    space = text.rfind(" ", start, end)
    if space >= 0:
        return space + 1
    return next((at for at in range(start, end) if unicodedata.category(text[at]) in {"Ps", "Pi"}), end)


def _spaced_before(word: Piece, following: str) -> Piece:
    return replace(word, is_spaced=not (is_unspaced(word.text[-1]) and is_unspaced(following[0])))


def _parts(word: Piece, most: float) -> list[Piece]:
    """What an engine calls a word may hold spaces, and be longer than a line."""
    rows = [unbreakable(text, most=most) for text in word.text.split(" ")]
    parts = _spread(word, [part for row in rows for part in row])
    row_ends = set(accumulate(map(len, rows)))
    spaced = [replace(part, is_spaced=number in row_ends) for number, part in enumerate(parts, start=1)]
    return [*spaced[:-1], replace(spaced[-1], is_spaced=word.is_spaced)]


def _spread(over: Piece, texts: list[str]) -> list[Piece]:
    """As if every letter took as long."""
    total = sum(map(columns, texts)) or 1.0
    seconds = max(0.0, over.end_seconds - over.start_seconds)
    pieces, at = list[Piece](), 0.0
    for text in texts:
        start, at = at, at + columns(text) / total
        pieces.append(Piece(over.start_seconds + seconds * start, over.start_seconds + seconds * at, text))
    return pieces


def _ordered(pieces: list[Piece], until_seconds: float | None) -> list[Piece]:
    """Engines may tell times that run backwards, overlap, or lie behind the end."""
    last = max((piece.end_seconds for piece in pieces), default=0.0) if until_seconds is None else until_seconds
    starts = list(_rising([min(max(0.0, piece.start_seconds), last) for piece in pieces]))
    ends = [*starts, last][1:]
    return [
        replace(piece, start_seconds=start, end_seconds=max(start, min(piece.end_seconds, end)))
        for piece, start, end in zip(pieces, starts, ends, strict=True)
    ]


def _rising(values: list[float]) -> Iterator[float]:
    highest = 0.0
    for value in values:
        highest = max(highest, value)
        yield highest
