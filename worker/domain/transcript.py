"""What was said, and when: plain values, no I/O. Times are seconds from the start of the sound."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Word:
    start_seconds: float
    end_seconds: float
    text: str
    #: 0 … 1; None: the engine does not tell
    confidence: float | None = None
    #: the engine does not tell its time; it was spread over the speech it belongs to
    is_estimated: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """Some words that belong together."""

    start_seconds: float
    end_seconds: float
    text: str
    #: empty: the engine knows none
    words: tuple[Word, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Transcript:
    engine: str
    language: str
    segments: tuple[Segment, ...] = field(default=())
    #: which weights the engine used, where it has a choice
    model: str | None = None

    @property
    def text(self) -> str:
        return " ".join(segment.text for segment in self.segments)

    @property
    def words(self) -> list[Word]:
        return [word for segment in self.segments for word in segment.words]


def moved(segment: Segment, seconds: float) -> Segment:
    """The same words so much later."""
    words = tuple(
        replace(word, start_seconds=word.start_seconds + seconds, end_seconds=word.end_seconds + seconds)
        for word in segment.words
    )
    return replace(
        segment, start_seconds=segment.start_seconds + seconds, end_seconds=segment.end_seconds + seconds, words=words
    )


def transcript_json(transcript: Transcript) -> dict[str, Any]:
    """The artifact's shape."""
    return {
        "engine": transcript.engine,
        "model": transcript.model,
        "language": transcript.language,
        "text": transcript.text,
        "segments": [
            {
                "start": _rounded(segment.start_seconds),
                "end": _rounded(segment.end_seconds),
                "text": segment.text,
                "words": [_word_json(word) for word in segment.words],
            }
            for segment in transcript.segments
        ],
    }


def transcript_from_json(found: Mapping[str, Any]) -> Transcript:
    segments = tuple(
        Segment(
            item["start"],
            item["end"],
            item["text"],
            tuple(
                Word(word["start"], word["end"], word["text"], word.get("confidence"), word.get("estimated", False))
                for word in item["words"]
            ),
        )
        for item in found["segments"]
    )
    return Transcript(found["engine"], found["language"], segments, found["model"])


def _word_json(word: Word) -> dict[str, Any]:
    told: dict[str, Any] = {
        "start": _rounded(word.start_seconds),
        "end": _rounded(word.end_seconds),
        "text": word.text,
    }
    if word.confidence is not None:
        told["confidence"] = round(word.confidence, 4)
    if word.is_estimated:
        told["estimated"] = True
    return told


def _rounded(seconds: float) -> float:
    return round(seconds, 3)
