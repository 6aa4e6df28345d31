"""The transcript's artifact says everything the transcript knows."""

import json

from worker.domain.transcript import Segment, Transcript, Word, transcript_from_json, transcript_json


def test_what_is_written_is_read_back() -> None:
    words = (Word(0.5, 0.75, "Fail", 0.9), Word(0.75, 1.25, "better.", is_estimated=True))
    transcript = Transcript("moonshine", "en", (Segment(0.5, 1.25, "Fail better.", words),), "tiny-en")
    assert transcript_from_json(json.loads(json.dumps(transcript_json(transcript)))) == transcript


def test_the_shape_that_readers_rely_on() -> None:
    word = Word(1 / 3, 2 / 3, "häh?", 0.123456, is_estimated=True)
    assert transcript_json(Transcript("http", "de", (Segment(1 / 3, 2 / 3, "häh?", (word,)),))) == {
        "engine": "http",
        "model": None,
        "language": "de",
        "text": "häh?",
        "segments": [
            {
                "start": 0.333,
                "end": 0.667,
                "text": "häh?",
                "words": [{"start": 0.333, "end": 0.667, "text": "häh?", "confidence": 0.1235, "estimated": True}],
            }
        ],
    }
