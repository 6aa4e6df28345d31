"""When words were said, where an engine tells only what: they are spread over the speech that was found."""

from collections.abc import Sequence

from worker.domain.transcript import Word

Times = tuple[float, float]


def spread(text: str, speech: Sequence[Times]) -> tuple[Word, ...]:
    """Each word gets time by its length, and none lies in a pause."""
    texts = text.split()
    total = sum(end - start for start, end in speech)
    if not texts or total <= 0:
        return ()
    weights = [len(each) + 1 for each in texts]
    second = total / sum(weights)
    words, spoken = [], 0.0
    for each, weight in zip(texts, weights, strict=True):
        start, end = _on_the_clock(speech, spoken, spoken + weight * second)
        words.append(Word(start, end, each, is_estimated=True))
        spoken += weight * second
    return tuple(words)


def _on_the_clock(speech: Sequence[Times], first: float, last: float) -> Times:
    """Seconds of speech as times: a word that would span a pause lies where most of it is."""
    middle, passed = (first + last) / 2, 0.0
    for start, end in speech:
        length = end - start
        if middle <= passed + length or (start, end) == speech[-1]:
            return (
                min(end, max(start, start + first - passed)),
                max(start, min(end, start + last - passed)),
            )
        passed += length
    raise AssertionError("the last stretch takes whatever is left")
