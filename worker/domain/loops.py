"""Engines sometimes go on repeating what they heard last; nobody speaks that fast."""

from typing import Final

#: an auctioneer; people talk at 13 to 17
CHARACTERS_A_SECOND: Final = 25.0
#: of words that may be said over and over
LONGEST_PHRASE_WORDS: Final = 12


def without_loop(text: str, *, seconds: float) -> str:
    """The text without repetitions at its end that do not fit into the time. Real ones, which fit, stay."""
    words = text.split()
    while len(" ".join(words)) > CHARACTERS_A_SECOND * seconds:
        phrase = _repeated_at_the_end(words)
        if phrase == 0:
            break
        words = words[:-phrase]
    return " ".join(words)


def _repeated_at_the_end(words: list[str]) -> int:
    """How many words the phrase has that ends the text twice in a row; 0 when there is none."""
    plain = [_plain(word) for word in words]
    for length in range(1, min(LONGEST_PHRASE_WORDS, len(plain) // 2) + 1):
        if plain[-length:] == plain[-2 * length : -length]:
            return length
    return 0


def _plain(word: str) -> str:
    return "".join(char for char in word.casefold() if char.isalnum())
