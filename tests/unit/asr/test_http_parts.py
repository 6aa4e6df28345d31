"""The pure parts of the engine `http`: addresses, answers, refusals, languages, doubt."""

from datetime import UTC, datetime

import pytest

from worker.asr.answers import BadAnswerError, read_answer
from worker.asr.base import Window
from worker.asr.doubt import is_invented
from worker.asr.endpoint import parse_endpoint
from worker.asr.languages import language_code, whisper_code
from worker.asr.refusal import is_transient, retry_after_seconds, servers_words
from worker.errors import ConfigError

WINDOW = Window(100.0, 110.0, speech=((101.0, 104.0), (105.0, 109.0)))


@pytest.mark.parametrize(
    ("url", "transcriptions", "models"),
    [
        ("https://api.x/v1", "https://api.x/v1/audio/transcriptions", "https://api.x/v1/models"),
        ("https://api.x/v1/", "https://api.x/v1/audio/transcriptions", "https://api.x/v1/models"),
        (
            "http://x:1/v1/audio/transcriptions/?v=2#f",
            "http://x:1/v1/audio/transcriptions?v=2",
            "http://x:1/v1/models?v=2",
        ),
        ("http://x:8080/inference", "http://x:8080/inference", "http://x:8080/"),
        ("http://x", "http://x/audio/transcriptions", "http://x/models"),
    ],
)
def test_endpoint_of_what_people_write(url: str, transcriptions: str, models: str) -> None:
    endpoint = parse_endpoint(url)
    assert (endpoint.transcriptions, endpoint.models) == (transcriptions, models)
    assert "?" not in endpoint.label


@pytest.mark.parametrize(
    "url", ["", "api.openai.com/v1", "ftp://x/v1", "http://", "http://x:port/", "http://me:pw@x/v1"]
)
def test_what_is_no_address_is_a_wrong_setting(url: str) -> None:
    with pytest.raises(ConfigError, match="ASR_URL") as caught:
        parse_endpoint(url)
    assert "pw" not in str(caught.value)


def test_words_go_to_their_segments_and_get_the_text_s_punctuation() -> None:
    heard = read_answer(
        {
            "language": "German",
            "segments": [{"start": 0, "end": 2, "text": " Ja, gut."}, {"start": 2.5, "end": 12, "text": " Nein!"}],
            "words": [
                {"word": "Ja", "start": 0, "end": 1},
                {"word": "gut", "start": 1, "end": 1.9, "probability": 1.7},
                {"word": "Nein", "start": 2.2, "end": 11},
            ],
        },
        WINDOW,
    )
    assert heard.language == "de"
    first, second = heard.segments
    assert [(word.text, word.confidence) for word in first.words] == [("Ja,", None), ("gut.", 1.0)]
    assert [(word.text, word.end_seconds) for word in second.words] == [("Nein!", 10.0)]
    assert second.end_seconds == 10.0


def test_words_inside_segments_are_taken_and_those_with_holes_are_not() -> None:
    timed = {"word": " one", "start": 0.5, "end": 1, "probability": 0.5}
    segment = {"start": 0, "end": 2, "text": "one two"}
    whole = read_answer({"segments": [{**segment, "text": "one", "words": [timed]}]}, WINDOW)
    holed = read_answer({"segments": [{**segment, "words": [timed, {"word": "two"}]}]}, WINDOW)
    assert [word.confidence for word in whole.segments[0].words] == [0.5]
    assert holed.segments[0].words == ()


def test_words_alone_become_segments_at_sentence_ends_and_pauses() -> None:
    words = [("It", 0, 1), ("is.", 1, 2), ("So", 2, 3), ("what", 5, 6)]
    answer = {"text": "", "words": [{"word": word, "start": start, "end": end} for word, start, end in words]}
    assert [segment.text for segment in read_answer(answer, WINDOW).segments] == ["It is.", "So", "what"]


def test_text_alone_spans_the_speech() -> None:
    (segment,) = read_answer({"text": " hello "}, WINDOW).segments
    assert (segment.start_seconds, segment.end_seconds, segment.text) == (1.0, 9.0, "hello")
    assert read_answer({"text": " … "}, WINDOW).segments == ()


def test_invented_segments_are_dropped_with_their_words() -> None:
    good = {"start": 0, "end": 2, "text": "good", "no_speech_prob": 0.9, "avg_logprob": -0.2, "compression_ratio": 1.1}
    silent = {**good, "start": 2, "end": 4, "text": "Thanks for watching!", "avg_logprob": -1.4}
    looped = {**good, "start": 4, "end": 6, "text": "la la la", "compression_ratio": 9.0}
    beyond = {"start": 11, "end": 12, "text": "after the end"}
    words = [{"word": "good", "start": 0, "end": 1}, {"word": "Thanks", "start": 3, "end": 4}]
    heard = read_answer({"segments": [good, silent, looped, beyond], "words": words}, WINDOW)
    assert [segment.text for segment in heard.segments] == ["good"]
    assert [word.text for word in heard.segments[0].words] == ["good"]


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        "text",
        {},
        {"text": 5},
        {"segments": "no"},
        {"segments": [{"text": "x"}]},
        {"segments": [5]},
        {"segments": [{"start": float("nan"), "end": 1, "text": "x"}]},
        {"words": {"a": 1}},
    ],
)
def test_other_shapes_are_bad_answers(answer: object) -> None:
    with pytest.raises(BadAnswerError):
        read_answer(answer, WINDOW)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        ("Wed, 18 Nov 2026 12:00:30 GMT", 30.0),
        ("Wed, 18 Nov 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("-3", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_in_both_forms(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header, now=datetime(2026, 11, 18, 12, 0, tzinfo=UTC)) == seconds


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error": {"message": "no such model"}}', "no such model"),
        (b'{"error": "busy"}', "busy"),
        (b'{"detail": [{"loc": ["model"], "msg": "field required"}]}', "field required"),
        (b"plain\n text", "plain text"),
        (b"<html><body>", "an HTML page"),
        (b"", ""),
        (b"key s3cr3t at http://me:pw@x/?k=1", "key *** at http://***@x/?***"),
    ],
)
def test_words_of_a_server(body: bytes, words: str) -> None:
    assert servers_words(body, secret="s3cr3t") == words


def test_words_of_a_server_stay_short() -> None:
    assert len(servers_words(b"x" * 10_000, secret=None)) == 301


def test_what_may_pass_is_told_from_what_will_not() -> None:
    assert [status for status in (400, 401, 403, 404, 408, 409, 413, 429, 500, 503) if is_transient(status)] == [
        408,
        409,
        429,
        500,
        503,
    ]


@pytest.mark.parametrize(
    ("told", "code"),
    [("english", "en"), ("Haitian Creole", "ht"), ("en", "en"), ("en-US", "en"), ("jw", "jv"), ("klingonian", None)],
)
def test_language_of_an_answer(told: str, code: str | None) -> None:
    assert language_code(told) == code


@pytest.mark.parametrize(("told", "code"), [("en-GB", "en"), ("jv", "jw"), ("nb", "no"), ("tlh", None)])
def test_language_as_whisper_calls_it(told: str, code: str | None) -> None:
    assert whisper_code(told) == code


def test_doubt_needs_both_silence_and_uncertainty() -> None:
    def invented(silence: float | None, log_probability: float | None, ratio: float | None = 1.5) -> bool:
        return is_invented(no_speech_probability=silence, mean_log_probability=log_probability, compression_ratio=ratio)

    assert invented(0.9, -1.5)
    assert not invented(0.9, -0.5)
    assert not invented(0.1, -1.5)
    assert not invented(None, -1.5, None)
    assert invented(0.0, -0.1, 2.5)
