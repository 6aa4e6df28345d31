"""Any server that speaks OpenAI's transcription API, near or far."""

import asyncio
import json
from enum import IntEnum
from functools import partial
from pathlib import Path

import aiohttp
from pydantic import SecretStr

from worker.asr.answers import read_answer
from worker.asr.base import Heard, Window, WindowPolicy
from worker.asr.endpoint import parse_endpoint
from worker.asr.flac import encode_window
from worker.asr.http_call import Caller, RefusedShapeError
from worker.asr.languages import primary_subtag
from worker.errors import AsrRefused

DEFAULT_MODEL = "whisper-1"
_CHECK_SECONDS = 10.0


class _Detail(IntEnum):
    """How much to ask for; a server that does not know the most is asked for less from then on."""

    TEXT = 0
    SEGMENTS = 1
    WORDS = 2


class HttpEngine:
    name = "http"
    #: one call has its cost, and the model behind it cuts by itself; ten minutes of FLAC stay below 25 MB
    policy = WindowPolicy(shortest_seconds=60.0, longest_seconds=600.0)
    at_once = 4

    def __init__(
        self,
        url: str,
        *,
        model: str = DEFAULT_MODEL,
        api_key: SecretStr | None = None,
        timeout_seconds: float = 120.0,
    ) -> None:
        """ConfigError for a `url` that is none. `timeout_seconds` bounds one call, its upload included."""
        self._endpoint = parse_endpoint(url)
        self.model: str | None = model
        self._model_name = model
        key = None if api_key is None else api_key.get_secret_value()
        self._caller = Caller(self._endpoint.label, api_key=key, timeout_seconds=timeout_seconds)
        self._detail = _Detail.WORDS

    def check_language(self, language: str | None) -> None:
        """Only the server knows what it knows."""

    async def hear(self, wav: Path, window: Window, *, language: str | None) -> Heard:
        flac = await asyncio.to_thread(encode_window, wav, window)
        code = None if language is None else primary_subtag(language)
        heard = await self._transcribe(flac, code, window)
        return Heard(heard.segments, heard.language or code)

    async def check(self) -> str:
        """What it would use, in a line; asks the server, but has nothing transcribed."""
        told = f"{self._endpoint.label}, model {self.model}"
        status, body = await self._caller.get(self._endpoint.models, timeout_seconds=_CHECK_SECONDS)
        names = _model_names(body) if status == 200 else set()
        if names and self.model not in names:
            told += " (which is not among those that the server lists)"
        return told

    async def close(self) -> None:
        await self._caller.close()

    async def _transcribe(self, flac: bytes, language: str | None, window: Window) -> Heard:
        while True:
            detail = self._detail
            try:
                form = partial(self._form, flac, language, detail)
                return await self._caller.post(self._endpoint.transcriptions, form, partial(read_answer, window=window))
            except RefusedShapeError as exc:
                if detail is _Detail.TEXT:
                    raise AsrRefused(f"{self._endpoint.label} refused ({exc}); check ASR_MODEL.") from exc
                # min: another window may have learnt more meanwhile.
                self._detail = min(self._detail, _less(detail, str(exc)))

    def _form(self, flac: bytes, language: str | None, detail: _Detail) -> aiohttp.FormData:
        form = aiohttp.FormData()
        form.add_field("file", flac, filename="speech.flac", content_type="audio/flac")
        form.add_field("model", self._model_name)
        form.add_field("temperature", "0")
        form.add_field("response_format", "json" if detail is _Detail.TEXT else "verbose_json")
        if detail is _Detail.WORDS:
            form.add_field("timestamp_granularities[]", "word")
            form.add_field("timestamp_granularities[]", "segment")
        if language is not None:
            form.add_field("language", language)
        return form


def _less(detail: _Detail, said: str) -> _Detail:
    is_format_known = "response_format" not in said and "verbose" not in said
    return _Detail.SEGMENTS if detail is _Detail.WORDS and is_format_known else _Detail.TEXT


def _model_names(body: bytes) -> set[str]:
    try:
        return {item["id"] for item in json.loads(body)["data"]}
    except (ValueError, KeyError, TypeError):
        # Lists of models are for people; one that cannot be read says nothing about transcriptions.
        return set()
