"""How many words of a text were heard wrongly."""

import re
from dataclasses import dataclass

_WORD = re.compile(r"[a-z0-9']+")


@dataclass(frozen=True, slots=True)
class Score:
    errors: int
    words: int

    @property
    def percent(self) -> float:
        return 100 * self.errors / self.words

    def __add__(self, other: "Score") -> "Score":
        return Score(self.errors + other.errors, self.words + other.words)


def words_of(text: str) -> list[str]:
    """Lower case, without punctuation: engines differ in it, and nobody hears it."""
    return _WORD.findall(text.lower().replace("-", " "))


def score(said: str, heard: str) -> Score:
    """Words that are wrong, missing or too many, as the field counts them."""
    reference, found = words_of(said), words_of(heard)
    distances = list(range(len(found) + 1))
    for row, expected in enumerate(reference, 1):
        diagonal, distances[0] = distances[0], row
        for column, actual in enumerate(found, 1):
            best = min(distances[column] + 1, distances[column - 1] + 1, diagonal + (expected != actual))
            diagonal, distances[column] = distances[column], best
    return Score(distances[-1], len(reference))
