"""One question to a transcription server, repeated while it may still be answered, and no longer."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import aiohttp
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from worker.asr.answers import BadAnswerError
from worker.asr.base import Heard
from worker.asr.refusal import advice, is_transient, retry_after_seconds, servers_words
from worker.errors import AsrRefused, AsrUnavailable
from worker.telemetry.redact import redact_text

ATTEMPTS = 4
#: a job that waits holds a slot; what takes longer is a matter of the queue, which tries again later
WAIT_BUDGET_SECONDS = 60.0
#: hours of words fit into it
_MAX_ANSWER_BYTES = 32 << 20

_own_wait = wait_random_exponential(multiplier=0.5, max=15)


class RefusedShapeError(Exception):
    """The server does not know a form of answer that was asked for; the message is its own."""


class _NotNowError(Exception):
    """Worth another try."""

    def __init__(self, message: str, *, wait_seconds: float | None = None) -> None:
        super().__init__(message)
        self.wait_seconds = wait_seconds


class Caller:
    """Never follows a redirect: the key would travel with it."""

    def __init__(self, label: str, *, api_key: str | None, timeout_seconds: float) -> None:
        self._label = label
        self._api_key = api_key
        self._timeout_seconds = timeout_seconds
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, make_form: Callable[[], aiohttp.FormData], read: Callable[[Any], Heard]) -> Heard:
        """What `read` makes of the answer; the form is made anew for each attempt, because sending uses it up."""
        try:
            return await self._post(url, make_form, read)
        except _NotNowError as exc:
            raise AsrUnavailable(str(exc)) from exc

    async def _post(self, url: str, make_form: Callable[[], aiohttp.FormData], read: Callable[[Any], Heard]) -> Heard:
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(_NotNowError), wait=_wait, stop=_is_over, reraise=True
        ):
            with attempt:
                status, headers, body = await self._ask("POST", url, self._timeout_seconds, data=make_form())
                self._check_status(status, headers, body)
                return self._understand(headers, body, read)
        raise AssertionError("tenacity returns or raises")

    async def get(self, url: str, *, timeout_seconds: float) -> tuple[int, bytes]:
        """Once. 404 and 405 are answers here, everything else as for `post`."""
        try:
            status, headers, body = await self._ask("GET", url, timeout_seconds)
            if status not in {404, 405}:
                self._check_status(status, headers, body)
        except _NotNowError as exc:
            raise AsrUnavailable(str(exc)) from exc
        return status, body

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _ask(self, method: str, url: str, timeout_seconds: float, **body: Any) -> tuple[int, Any, bytes]:
        try:
            async with (
                asyncio.timeout(timeout_seconds),
                self._open_session().request(method, url, allow_redirects=False, **body) as response,
            ):
                return response.status, response.headers, await self._read(response)
        except TimeoutError as exc:
            raise _NotNowError(f"{self._label} did not answer within {timeout_seconds:g} s (ASR_TIMEOUT_SEC).") from exc
        except aiohttp.ClientConnectorCertificateError as exc:
            raise AsrRefused(f"{self._label}: the server's TLS certificate was not accepted.") from exc
        except aiohttp.ClientConnectorError as exc:
            raise _NotNowError(f"{self._label} cannot be reached: {exc.os_error.strerror}. Check ASR_URL.") from exc
        except (aiohttp.ClientError, OSError) as exc:
            raise _NotNowError(f"{self._label}: the connection broke off ({type(exc).__name__}).") from exc

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
            # `_ask` bounds the whole of a call; aiohttp's own limit would be a second one.
            self._session = aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(sock_connect=10))
        return self._session

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for block in response.content.iter_any():
            body += block
            if len(body) > _MAX_ANSWER_BYTES:
                raise _NotNowError(f"{self._label} answered with more than {_MAX_ANSWER_BYTES >> 20} MB.")
        return bytes(body)

    def _check_status(self, status: int, headers: Any, body: bytes) -> None:
        if 200 <= status < 300:
            return
        if status < 400:
            target = redact_text(headers.get("Location", "nowhere"))
            raise AsrRefused(f"{self._label} redirects to {target}, which is not followed: correct ASR_URL.")
        words = servers_words(body, secret=self._api_key)
        said = f"HTTP {status}" + (f": {words}" if words else "")
        if is_transient(status):
            wait_seconds = retry_after_seconds(headers.get("Retry-After"))
            raise _NotNowError(f"{self._label} cannot transcribe now ({said}).", wait_seconds=wait_seconds)
        if status in {400, 422} and any(name in body for name in (b"response_format", b"timestamp_granul", b"verbose")):
            raise RefusedShapeError(said)
        raise AsrRefused(f"{self._label} refused ({said}); {advice(status)}.")

    def _understand(self, headers: Any, body: bytes, read: Callable[[Any], Heard]) -> Heard:
        kind = headers.get("Content-Type", "nothing").partition(";")[0].strip().lower()
        if kind != "application/json" and not kind.endswith("+json"):
            raise _NotNowError(f"{self._label} answered with {kind[:60]} instead of JSON. Check ASR_URL.")
        try:
            return read(json.loads(body))
        except BadAnswerError as exc:
            raise _NotNowError(f"{self._label} answered with no transcription: {exc}.") from exc
        except (ValueError, RecursionError) as exc:
            raise _NotNowError(f"{self._label} answered with broken JSON of {len(body)} bytes.") from exc


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome is not None else None
    told = error.wait_seconds if isinstance(error, _NotNowError) else None
    return float(_own_wait(state)) if told is None else told


def _is_over(state: RetryCallState) -> bool:
    if stop_after_attempt(ATTEMPTS)(state):
        return True
    return state.idle_for + state.upcoming_sleep > WAIT_BUDGET_SECONDS
