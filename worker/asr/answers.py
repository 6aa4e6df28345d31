"""What transcription servers answer with, in the many shapes there are, as segments and words."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from worker.asr.base import Heard, Window
from worker.asr.doubt import is_invented
from worker.asr.languages import language_code
from worker.domain.text import storable
from worker.domain.transcript import Segment, Word

#: words without segments become one at each pause of this length, and at the end of a sentence
PAUSE_SECONDS = 1.0
_SENTENCE_ENDS = (".", "?", "!", "…", "。", "\uff1f", "\uff01")


class BadAnswerError(Exception):
    """Not what a transcription looks like; the message says what is wrong with it."""


def read_answer(answer: Any, window: Window) -> Heard:
    """Times from the window's start. Segments whose words the server does not tell have none."""
    answer = storable(answer)
    if not isinstance(answer, Mapping):
        raise BadAnswerError("it is not a JSON object")
    length = window.end_seconds - window.start_seconds
    segments, words = _objects(answer, "segments"), _timed_words(_objects(answer, "words"), length)
    if segments:
        found = _from_segments(segments, words, length)
    elif words:
        found = list(_from_words(words))
    else:
        found = _from_text(answer, window)
    language = answer.get("language")
    return Heard(tuple(found), language_code(language) if isinstance(language, str) else None)


def _objects(answer: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = answer.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise BadAnswerError(f"`{key}` is not a list of objects")
    return value


def _from_text(answer: Mapping[str, Any], window: Window) -> list[Segment]:
    text = answer.get("text")
    if not isinstance(text, str):
        raise BadAnswerError("it has neither `text` nor `segments` nor `words`")
    if not _is_said(text):
        return []
    first = window.speech[0][0] if window.speech else window.start_seconds
    last = window.speech[-1][1] if window.speech else window.end_seconds
    return [Segment(first - window.start_seconds, last - window.start_seconds, text.strip())]


def _from_segments(told: Sequence[Mapping[str, Any]], words: Sequence[Word], length: float) -> list[Segment]:
    bare = sorted((_bare_segment(item, length) for item in told), key=lambda pair: pair[0].start_seconds)
    shares = _share(words, [segment for segment, _ in bare])
    found = []
    for (segment, item), share in zip(bare, shares, strict=True):
        own = _timed_words(_objects(item, "words"), length) or share
        if _is_said(segment.text) and segment.start_seconds < length and not _is_doubtful(item):
            found.append(
                Segment(segment.start_seconds, segment.end_seconds, segment.text, _punctuated(own, segment.text))
            )
    return found


def _bare_segment(item: Mapping[str, Any], length: float) -> tuple[Segment, Mapping[str, Any]]:
    start, end, text = _number(item.get("start")), _number(item.get("end")), item.get("text")
    if start is None or end is None or not isinstance(text, str):
        raise BadAnswerError("a segment lacks its text or its times")
    start, end = _within(start, end, length)
    return Segment(start, end, text.strip()), item


def _is_doubtful(item: Mapping[str, Any]) -> bool:
    return is_invented(
        no_speech_probability=_number(item.get("no_speech_prob")),
        mean_log_probability=_number(item.get("avg_logprob")),
        compression_ratio=_number(item.get("compression_ratio")),
    )


def _timed_words(told: Iterable[Mapping[str, Any]], length: float) -> tuple[Word, ...]:
    """None at all if one lacks its time: a sentence with holes reads worse than one whose times are estimated."""
    words = []
    for item in told:
        text, start, end = item.get("word", item.get("text")), _number(item.get("start")), _number(item.get("end"))
        if not isinstance(text, str) or start is None or end is None:
            return ()
        if text.strip():
            start, end = _within(start, end, length)
            probability = _number(item.get("probability"))
            confidence = None if probability is None else min(max(0.0, probability), 1.0)
            words.append(Word(start, end, text.strip(), confidence))
    return tuple(sorted(words, key=lambda word: word.start_seconds))


def _share(words: Sequence[Word], segments: Sequence[Segment]) -> list[tuple[Word, ...]]:
    """Each word to the first segment that ends behind its middle; the rest to the last."""
    shares: list[list[Word]] = [[] for _ in segments]
    current = 0
    for word in words:
        middle = (word.start_seconds + word.end_seconds) / 2
        while current < len(segments) - 1 and segments[current].end_seconds <= middle:
            current += 1
        shares[current].append(word)
    return [tuple(share) for share in shares]


def _punctuated(words: tuple[Word, ...], text: str) -> tuple[Word, ...]:
    """Some servers strip punctuation from words but not from the text; where both agree, the text's form is taken."""
    forms = text.split()
    if [_letters(form) for form in forms] != [_letters(word.text) for word in words]:
        return words
    return tuple(
        Word(word.start_seconds, word.end_seconds, form, word.confidence)
        for word, form in zip(words, forms, strict=True)
    )


def _from_words(words: Sequence[Word]) -> Iterator[Segment]:
    group: list[Word] = []
    for word in words:
        if group and (
            group[-1].text.endswith(_SENTENCE_ENDS) or word.start_seconds - group[-1].end_seconds >= PAUSE_SECONDS
        ):
            yield _joined(group)
            group = []
        group.append(word)
    yield _joined(group)


def _joined(words: Sequence[Word]) -> Segment:
    text = " ".join(word.text for word in words)
    return Segment(words[0].start_seconds, words[-1].end_seconds, text, tuple(words))


def _within(start: float, end: float, length: float) -> tuple[float, float]:
    start = min(max(0.0, start), length)
    return start, min(max(start, end), length)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _is_said(text: str) -> bool:
    """Noise is heard as punctuation."""
    return any(char.isalnum() for char in text)
