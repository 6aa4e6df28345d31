"""How a caption's text becomes lines: what may be torn apart, how wide it is, and where it reads best."""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

#: the usual most of a line, by Netflix's and many broadcasters' rules
LINE_COLUMNS: Final = 42
#: more would cover the picture
MAX_LINES: Final = 2
#: sixteen Chinese or Japanese characters are a full line
WIDE_COLUMNS: Final = 42 / 16

SENTENCE_ENDS: Final = frozenset(".!?…。！？؟۔।")  # noqa: RUF001 - other scripts' own marks
CLAUSE_ENDS: Final = frozenset(",;:–—、，；：،؛")  # noqa: RUF001 - likewise
_CLOSERS: Final = frozenset("\"'”’»)]}」』）】")  # noqa: RUF001 - likewise
#: what begins a new thought, and so a line; other languages are broken by punctuation and balance alone
_OPENING_WORDS: Final = frozenset(
    {"and", "but", "or", "nor", "so", "yet", "because", "although", "though", "while", "when", "where", "if", "unless"}
    | {"until", "since", "that", "which", "who", "whose", "than", "as", "after", "before", "with", "without", "from"}
    | {"into", "about", "for", "to", "of", "in", "on", "at", "by"}
)
#: what leans on the word behind it
_LEANING_WORDS: Final = frozenset(
    {"a", "an", "the", "my", "your", "his", "her", "its", "our", "their", "this", "these", "those", "no"}
    | {"to", "of", "in", "on", "at", "by"}
)
#: scripts whose words stand without spaces: Thai, Lao, Burmese, Khmer, Kana, Han
_UNSPACED: Final = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3000, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF00, 0xFFEF),
    (0x20000, 0x3FFFF),
)
_JOINER: Final = "\u200d"
#: no true character is wider; without an end, a row of marks could outgrow a line
_CLUSTER_COLUMNS: Final = 8.0
_SMALL_KANA: Final = frozenset("ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮー々")


@dataclass(frozen=True, slots=True)
class Piece:
    """What is never torn apart: a word, or a character of a script without spaces."""

    start_seconds: float
    end_seconds: float
    text: str
    #: a space follows, unless the line ends here
    is_spaced: bool = True


def clean(text: str) -> str:
    """One line without control characters; half a surrogate pair could not even be written."""
    kept = (" " if unicodedata.category(char) in {"Cc", "Zl", "Zp"} else char for char in text)
    return " ".join("".join(char for char in kept if unicodedata.category(char) != "Cs").split())


def columns(text: str) -> float:
    """How wide a text is, in letters; accents take no room, and emoji that are joined the room of one."""
    return sum(_char_columns(before, char) for before, char in pairwise(f" {text}"))


def _char_columns(before: str, char: str) -> float:
    if before == _JOINER or unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0.0
    return WIDE_COLUMNS if unicodedata.east_asian_width(char) in {"W", "F"} else 1.0


def is_unspaced(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in _UNSPACED)


def unbreakable(text: str, *, most: float) -> list[str]:
    """The parts of a word between which a line may end: characters where a script has no spaces, else all of it.

    What is too long for a line is broken anyway.
    """
    parts = list[str]()
    for cluster in _clusters(text):
        if parts and (not _may_break(parts[-1], cluster)) and columns(parts[-1] + cluster) <= most:
            parts[-1] += cluster
        else:
            parts.append(cluster)
    return parts


def _clusters(text: str) -> list[str]:
    """Characters as people count them: accents, emoji families and flags stay whole."""
    clusters = list[str]()
    for char in text:
        if clusters and _belongs_to(clusters[-1], char):
            clusters[-1] += char
        else:
            clusters.append(char)
    return clusters


def _belongs_to(cluster: str, char: str) -> bool:
    is_mark = unicodedata.category(char) in {"Mn", "Me", "Mc", "Cf"} or "\U0001f3fb" <= char <= "\U0001f3ff"
    is_half_flag = len(cluster) == 1 and _is_flag_letter(cluster) and _is_flag_letter(char)
    return (is_mark or cluster.endswith(_JOINER) or is_half_flag) and columns(cluster + char) <= _CLUSTER_COLUMNS


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _may_break(before: str, after: str) -> bool:
    """Within a word: only beside characters of scripts without spaces, and never away from their punctuation."""
    if not (is_unspaced(before[-1]) or is_unspaced(after[0])):
        return False
    closes = unicodedata.category(after[0]) in {"Pe", "Pf", "Po"} or after[0] in _SMALL_KANA
    opens = unicodedata.category(before[-1]) in {"Ps", "Pi"}
    return not closes and not opens


def ends_sentence(text: str) -> bool:
    return text.rstrip("".join(_CLOSERS))[-1:] in SENTENCE_ENDS


def ends_clause(text: str) -> bool:
    return text.rstrip("".join(_CLOSERS))[-1:] in CLAUSE_ENDS


def leans_on_next(text: str) -> bool:
    return text.lower() in _LEANING_WORDS


def opens_clause(text: str) -> bool:
    return text.lower() in _OPENING_WORDS


def joined(pieces: Iterable[Piece]) -> str:
    return "".join(piece.text + " " * piece.is_spaced for piece in pieces).rstrip(" ")


def break_lines(pieces: Sequence[Piece], *, most: float) -> tuple[str, ...]:
    """One line if it fits, else two at the best place."""
    whole = joined(pieces)
    if columns(whole) <= most:
        return (whole,)
    widths = [columns(piece.text) + piece.is_spaced for piece in pieces]
    ends = list(accumulate(widths))
    places = [
        place
        for place in range(1, len(pieces))
        if ends[place - 1] - pieces[place - 1].is_spaced <= most
        and ends[-1] - pieces[-1].is_spaced - ends[place - 1] <= most
    ]
    assert places, "cues hold no more than two lines"
    best = min(places, key=lambda place: _break_cost(pieces, place, ends[place - 1], ends[-1]))
    return joined(pieces[:best]), joined(pieces[best:])


def _break_cost(pieces: Sequence[Piece], place: int, upper: float, total: float) -> float:
    """In columns of imbalance that a better place is worth."""
    before, after = pieces[place - 1].text, pieces[place].text
    lower = total - upper
    # a longer lower line leaves more of the picture free, and is nearer to where the eye comes from
    cost = lower - upper if lower >= upper else (upper - lower) * 1.2
    if ends_sentence(before) or ends_clause(before):
        cost -= 14
    elif opens_clause(after):
        cost -= 8
    if leans_on_next(before):
        cost += 12
    if 1 in (place, len(pieces) - place):
        cost += 10
    return cost
