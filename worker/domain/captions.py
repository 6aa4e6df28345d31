"""Captions: a transcript as what people read below a picture, and as the files that players know."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from worker.domain.caption_lines import (
    LINE_COLUMNS,
    Piece,
    break_lines,
    columns,
    ends_clause,
    ends_sentence,
    joined,
    leans_on_next,
    opens_clause,
)
from worker.domain.caption_pieces import caption_pieces
from worker.domain.transcript import Transcript

#: shorter ones flash by (Netflix: 20 frames of 24 a second)
MIN_SECONDS: Final = 5 / 6
#: longer ones are read twice
MAX_SECONDS: Final = 7.0
#: columns a second that nearly everybody can follow; rules ask for at most 17 to 20
READING_COLUMNS: Final = 17.0
#: two frames of 24 a second: without a gap the eye misses that the text has changed
GAP_MS: Final = 83
#: a gap shorter than this looks like a mistake and is closed down to GAP_MS
CHAIN_MS: Final = 500
#: whoever is silent for this long has ended a thought, whatever the punctuation says
LONG_PAUSE_SECONDS: Final = 1.0
PARAGRAPH_PAUSE_SECONDS: Final = 2.0
#: fewer columns than this look lost, unless they are a sentence
FEW_COLUMNS: Final = 12.0
#: takes no room and is never shown, but parts what would be markup together
WORD_JOINER: Final = "\u2060"
#: of nothing said: files of no bytes count as cut off, in storage and with those who fetch them
EMPTY_FILE: Final = "\n"
#: SubRip has no escapes, and players take these for tags, positions and times
_SRT_MARKUP: Final = re.compile(r"<(?=[A-Za-z/])|\{(?=\\)|--(?=>)")


@dataclass(frozen=True, slots=True)
class Cue:
    start_seconds: float
    end_seconds: float
    lines: tuple[str, ...]


def make_cues(
    transcript: Transcript, *, until_seconds: float | None = None, line_columns: float = LINE_COLUMNS
) -> list[Cue]:
    """In order, never overlapping, each word once. `until_seconds`: where the sound ends; None: with the last word."""
    pieces = caption_pieces(transcript, most=line_columns, until_seconds=until_seconds)
    if not pieces:
        return []
    groups = [group for stretch in _stretches(pieces, LONG_PAUSE_SECONDS) for group in _grouped(stretch, line_columns)]
    # rounded down: not a millisecond behind the end
    times = _times(groups, int(1000 * (pieces[-1].end_seconds if until_seconds is None else until_seconds)))
    return [
        Cue(start / 1000, end / 1000, break_lines(group, most=line_columns))
        for group, (start, end) in zip(groups, times, strict=True)
    ]


def to_srt(cues: Sequence[Cue]) -> str:
    """With plain line feeds: every player takes them, and the file is the same everywhere."""
    if not cues:
        return EMPTY_FILE
    blocks = (
        f"{number}\n{_clock(cue.start_seconds, ',')} --> {_clock(cue.end_seconds, ',')}\n"
        f"{_SRT_MARKUP.sub(lambda found: found[0] + WORD_JOINER, chr(10).join(cue.lines))}\n"
        for number, cue in enumerate(cues, start=1)
    )
    return "\n".join(blocks)


def to_vtt(cues: Sequence[Cue], *, language: str | None = None) -> str:
    # a header of its own for the language is no part of the standard
    note = f"\nNOTE language: {language}\n" if language and cues else ""
    blocks = (
        f"\n{_clock(cue.start_seconds, '.')} --> {_clock(cue.end_seconds, '.')}\n"
        f"{html.escape(chr(10).join(cue.lines), quote=False)}\n"
        for cue in cues
    )
    return f"WEBVTT\n{note}{''.join(blocks)}"


def to_text(transcript: Transcript) -> str:
    """A paragraph for what was said without a long pause."""
    pieces = caption_pieces(transcript, most=float("inf"), until_seconds=None)
    return "\n".join(f"{joined(stretch)}\n" for stretch in _stretches(pieces, PARAGRAPH_PAUSE_SECONDS)) or EMPTY_FILE


def _stretches(pieces: list[Piece], pause_seconds: float) -> list[list[Piece]]:
    """What is said without such a pause."""
    stretches = [pieces[:1]] if pieces else []
    for before, piece in pairwise(pieces):
        if piece.start_seconds - before.end_seconds >= pause_seconds:
            stretches.append([])
        stretches[-1].append(piece)
    return stretches


def _grouped(stretch: list[Piece], most: float) -> list[list[Piece]]:
    """The cheapest way to part a stretch into cues."""
    best: list[tuple[float, int]] = [(0.0, 0)] + [(float("inf"), 0)] * len(stretch)
    for first in range(len(stretch)):
        paid = best[first][0]
        for past in _fitting(stretch, first, most):
            cost = paid + _cue_cost(stretch, first, past, most)
            if cost < best[past][0]:
                best[past] = (cost, first)
    groups, past = list[list[Piece]](), len(stretch)
    while past:
        first = best[past][1]
        groups.append(stretch[first:past])
        past = first
    return groups[::-1]


def _fitting(stretch: list[Piece], first: int, most: float) -> range:
    """Where a cue that begins with `first` may end: two lines and seven seconds long at most."""
    line, lines, past = 0.0, 1, first
    while past < len(stretch):
        piece = stretch[past]
        width = columns(piece.text)
        if past > first and piece.end_seconds - stretch[first].start_seconds > MAX_SECONDS:
            break
        if line and line + width > most:
            line, lines = 0.0, lines + 1
        if lines > 2:
            break
        line += width + piece.is_spaced
        past += 1
    return range(first + 1, past + 1)


def _cue_cost(stretch: list[Piece], first: int, past: int, most: float) -> float:
    """How badly these pieces make a cue; the numbers only weigh one flaw against another."""
    pieces, is_last = stretch[first:past], past == len(stretch)
    # each cue costs something: the fewer changes the better
    cost = 2.0 + (0.0 if is_last else _end_cost(pieces[-1].text, stretch[past].text))
    cost += sum(2.0 for piece in pieces[:-1] if ends_sentence(piece.text))
    cost += sum(4 * pause for pause in _pauses(pieces) if pause > 0.5)
    width = columns(joined(pieces))
    # evenly filled cues read better than a full one after a short one
    cost += 2 * (width / (2 * most)) ** 2
    if width < FEW_COLUMNS and not (ends_sentence(pieces[-1].text) and _is_fresh(stretch, first)):
        cost += 4.0
    if not is_last:
        shown = max(0.001, stretch[past].start_seconds - pieces[0].start_seconds - GAP_MS / 1000)
        cost += 8 * max(0.0, 1 - shown / MIN_SECONDS) + min(8.0, 4 * max(0.0, width / READING_COLUMNS / shown - 1))
    return cost


def _end_cost(last: str, following: str) -> float:
    if ends_sentence(last):
        return 0.0
    if ends_clause(last):
        return 2.0
    return 3.0 if opens_clause(following) else 9.0 if leans_on_next(last) else 5.0


def _pauses(pieces: list[Piece]) -> list[float]:
    return [right.start_seconds - left.end_seconds for left, right in pairwise(pieces)]


def _is_fresh(stretch: list[Piece], first: int) -> bool:
    return first == 0 or ends_sentence(stretch[first - 1].text)


def _times(groups: list[list[Piece]], last_ms: int) -> list[tuple[int, int]]:
    """From the first word to the last, and on into the silence until it can be read."""
    starts = _apart([round(group[0].start_seconds * 1000) for group in groups], last_ms)
    times = []
    for group, start, following in zip(groups, starts, [*starts[1:], None], strict=True):
        needed = max(MIN_SECONDS, columns(joined(group)) / READING_COLUMNS)
        end = max(round(group[-1].end_seconds * 1000), start + round(needed * 1000))
        if following is None:
            room = last_ms
        else:
            # half a moment is still better than none where words come too fast
            room = max(following - GAP_MS, (start + following + 1) // 2)
            end = room if following - end < CHAIN_MS else end
        times.append((start, max(start + 1, min(end, room, start + round(MAX_SECONDS * 1000)))))
    return times


def _apart(starts: list[int], last_ms: int) -> list[int]:
    """A millisecond at least for each: no player takes a cue that ends as it begins."""
    apart, least = list[int](), 0
    for start in starts:
        least = max(least, start)
        apart.append(least)
        least += 2
    most = last_ms
    for at in reversed(range(len(apart))):
        most = max(0, most - 2)
        apart[at] = most = min(apart[at], most)
    return apart


def _clock(seconds: float, point: str) -> str:
    ms = round(seconds * 1000)
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}{point}{ms % 1000:03}"
