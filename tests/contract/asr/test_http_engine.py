"""The engine `http` against a real server: what it asks, what it understands, and what it does with a bad one."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.contract.asr.conftest import API_KEY, SpeechServer
from worker.asr.base import Heard, Window
from worker.asr.http import HttpEngine
from worker.errors import AsrRefused, AsrUnavailable, OutputCorrupt

WINDOW = Window(start_seconds=0.0, end_seconds=9.5, speech=((0.5, 9.0),))
EngineAt = Callable[..., HttpEngine]


def text_of(heard: Heard) -> str:
    return " ".join(segment.text for segment in heard.segments).lower()


def error(message: str) -> str:
    return json.dumps({"error": {"message": message, "type": "x", "code": None}})


async def test_window_is_heard_with_words_inside_it(engine_at: EngineAt, server: SpeechServer, beckett: Path) -> None:
    heard = await engine_at().hear(beckett, WINDOW, language="en-GB")

    assert {"tried", "failed", "again"} <= {word.strip(".,") for word in text_of(heard).split()}
    assert heard.language == "en"
    for segment in heard.segments:
        assert segment.text.split() == [word.text for word in segment.words]
        assert all(0 <= word.start_seconds <= word.end_seconds <= 9.5 for word in segment.words)
    (asked,) = server.seen()
    assert asked["headers"]["Authorization"] == f"Bearer {API_KEY}"
    assert asked["file"] == "speech.flac"
    assert asked["fields"] == {
        "model": ["tiny-en"],
        "temperature": ["0"],
        "response_format": ["verbose_json"],
        "timestamp_granularities[]": ["word", "segment"],
        "language": ["en"],
    }


async def test_only_the_window_is_sent(engine_at: EngineAt, beckett: Path) -> None:
    whole = await engine_at().hear(beckett, WINDOW, language=None)
    part = await engine_at().hear(beckett, Window(0.0, 3.0), language=None)
    assert 0 < len(text_of(part)) < len(text_of(whole)) * 0.7


async def test_server_keeps_the_contract_of_the_official_client(server: SpeechServer, beckett: Path) -> None:
    client = openai.AsyncOpenAI(base_url=f"{server.origin}/v1", api_key=API_KEY, max_retries=0)
    async with client:
        answer = await client.audio.transcriptions.create(
            file=beckett, model="tiny-en", response_format="verbose_json", timestamp_granularities=["word", "segment"]
        )
    assert answer.segments
    assert answer.words
    assert "tried" in answer.text.lower()
    (asked,) = server.seen()
    assert asked["fields"]["timestamp_granularities[]"] == ["word", "segment"]


@pytest.mark.parametrize("path", ["/v1/", "/v1/audio/transcriptions/", "/inference"])
async def test_addresses_are_taken_as_people_write_them(engine_at: EngineAt, beckett: Path, path: str) -> None:
    assert "tried" in text_of(await engine_at(path).hear(beckett, WINDOW, language=None))


@pytest.mark.parametrize(
    "steps",
    [
        [{"status": 500}, {"status": 503}],
        [{"cut": True}],
        [{"status": 200, "body": '{"choices": []}'}],
        [{"status": 200, "body": '{"text": "Ever tr'}],
        [{"status": 200, "headers": {"Content-Type": "text/html"}, "body": "<html>"}],
    ],
)
async def test_passing_trouble_is_waited_out(
    engine_at: EngineAt, server: SpeechServer, beckett: Path, steps: list[dict[str, Any]]
) -> None:
    server.script(*steps)
    assert "tried" in text_of(await engine_at().hear(beckett, WINDOW, language=None))
    assert len(server.seen()) == len(steps) + 1


async def test_retry_after_is_kept(engine_at: EngineAt, server: SpeechServer, beckett: Path) -> None:
    server.script({"status": 429, "headers": {"Retry-After": "2"}})
    began = time.monotonic()
    assert "tried" in text_of(await engine_at().hear(beckett, WINDOW, language=None))
    assert time.monotonic() - began >= 2


async def test_retry_after_beyond_the_budget_is_left_to_the_queue(
    engine_at: EngineAt, server: SpeechServer, beckett: Path
) -> None:
    server.script({"status": 429, "headers": {"Retry-After": "600"}, "body": error("slow down")})
    with pytest.raises(AsrUnavailable, match="HTTP 429: slow down"):
        await engine_at().hear(beckett, WINDOW, language=None)
    assert len(server.seen()) == 1


async def test_lasting_trouble_is_unavailable_after_four_attempts(
    engine_at: EngineAt, server: SpeechServer, beckett: Path
) -> None:
    server.script(*[{"status": 500, "body": error(f"broken, says {API_KEY}")}] * 9)
    with pytest.raises(AsrUnavailable, match="HTTP 500: broken") as caught:
        await engine_at().hear(beckett, WINDOW, language=None)
    assert "hunter2" not in str(caught.value)
    assert len(server.seen()) == 4


async def test_slow_server_is_unavailable(engine_at: EngineAt, server: SpeechServer, beckett: Path) -> None:
    server.script(*[{"seconds": 5}] * 4)
    with pytest.raises(AsrUnavailable, match=r"within 0\.2 s"):
        await engine_at(timeout_seconds=0.2).hear(beckett, WINDOW, language=None)


@pytest.mark.parametrize(
    ("status", "advice"), [(401, "ASR_API_KEY"), (404, "ASR_URL and ASR_MODEL"), (413, "25 MB"), (422, "ASR_MODEL")]
)
async def test_refusal_is_final_and_tells_why_without_the_key(
    engine_at: EngineAt, server: SpeechServer, beckett: Path, status: int, advice: str
) -> None:
    server.script({"status": status, "body": error(f"No, {API_KEY} may not")})
    with pytest.raises(AsrRefused, match=rf"HTTP {status}: No, \*\*\* may not.*{advice}") as caught:
        await engine_at().hear(beckett, WINDOW, language=None)
    assert "hunter2" not in str(caught.value)
    assert len(server.seen()) == 1


async def test_redirect_is_not_followed(engine_at: EngineAt, server: SpeechServer, beckett: Path) -> None:
    server.script({"status": 307, "headers": {"Location": f"{server.origin}/inference?key=hunter2"}})
    with pytest.raises(AsrRefused, match=r"redirects to .*/inference.*ASR_URL") as caught:
        await engine_at().hear(beckett, WINDOW, language=None)
    assert "hunter2" not in str(caught.value)
    assert len(server.seen()) == 1


async def test_server_without_verbose_answers_is_asked_plainly_from_then_on(
    engine_at: EngineAt, server: SpeechServer, beckett: Path
) -> None:
    server.script({"status": 400, "body": error("response_format 'verbose_json' is not compatible with this model")})
    engine = engine_at()
    for _ in range(2):
        (segment,) = (await engine.hear(beckett, WINDOW, language=None)).segments
        assert (segment.start_seconds, segment.end_seconds, segment.words) == (0.5, 9.0, ())
    formats = [asked["fields"]["response_format"] for asked in server.seen()]
    assert formats == [["verbose_json"], ["json"], ["json"]]


async def test_server_without_word_times_still_gives_segments(
    engine_at: EngineAt, server: SpeechServer, beckett: Path
) -> None:
    server.script({"status": 422, "body": json.dumps({"detail": [{"msg": "timestamp_granularities: no word"}]})})
    await engine_at().hear(beckett, WINDOW, language=None)
    again = server.seen()[1]["fields"]
    assert again["response_format"] == ["verbose_json"]
    assert "timestamp_granularities[]" not in again


async def test_nobody_there_is_unavailable(beckett: Path) -> None:
    engine = HttpEngine("http://127.0.0.1:9/v1")
    with pytest.raises(AsrUnavailable, match="cannot be reached"):
        await engine.hear(beckett, WINDOW, language=None)
    await engine.close()


async def test_unreadable_sound_is_corrupt_output(engine_at: EngineAt, tmp_path: Path) -> None:
    (tmp_path / "garbage.wav").write_bytes(b"<html>" * 100)
    with pytest.raises(OutputCorrupt):
        await engine_at().hear(tmp_path / "garbage.wav", WINDOW, language=None)


async def test_check_asks_for_the_models(engine_at: EngineAt, server: SpeechServer) -> None:
    assert (await engine_at().check()).endswith("model tiny-en")
    assert "not among those" in await engine_at(model="other").check()
    assert "inference" in await engine_at("/inference").check()
    server.script({"status": 401, "body": error("who are you")})
    with pytest.raises(AsrRefused, match="who are you"):
        await engine_at().check()
