"""What a transcription server's status means for the job, told in the server's own words, without secrets."""

import contextlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from worker.telemetry.redact import REDACTED, redact_text

#: 409 because the official client repeats it too
TRANSIENT = frozenset({408, 409, 425, 429})
_MAX_WORDS_CHARS = 300
_ADVICE = {
    400: "check ASR_MODEL, and the job's `language`",
    401: "check ASR_API_KEY",
    403: "check ASR_API_KEY, and that it may use ASR_MODEL",
    404: "check ASR_URL and ASR_MODEL",
    405: "check ASR_URL",
    413: "the server must take uploads of 25 MB",
    415: "the server must take FLAC",
    422: "check ASR_MODEL, and the job's `language`",
}


def is_transient(status: int) -> bool:
    return status in TRANSIENT or status >= 500


def advice(status: int) -> str:
    return _ADVICE.get(status, "check ASR_URL")


def servers_words(body: bytes, *, secret: str | None) -> str:
    """The error message in an answer, made short and safe to store; empty: there is none."""
    text = body.decode(errors="replace").strip()
    if text.startswith("<"):
        return "an HTML page"
    # What is not JSON is taken as it is.
    with contextlib.suppress(ValueError, RecursionError):
        text = _message(json.loads(text))
    if secret:
        text = text.replace(secret, REDACTED)
    text = " ".join(redact_text(text).split())
    return text if len(text) <= _MAX_WORDS_CHARS else text[:_MAX_WORDS_CHARS] + "…"


def _message(answer: Any) -> str:
    """OpenAI writes `error.message`, others `error` or `message`, FastAPI `detail`."""
    while isinstance(answer, Mapping):
        found = next((answer[key] for key in ("error", "message", "detail", "msg") if answer.get(key)), None)
        if found is None:
            return json.dumps(answer)
        answer = found
    if isinstance(answer, list):
        return "; ".join(_message(item) for item in answer[:5])
    return str(answer)


def retry_after_seconds(header: str | None, *, now: datetime | None = None) -> float | None:
    """Both forms of the header: seconds, and a date; None: it says nothing that can be understood."""
    told = (header or "").strip()
    if told.isascii() and told.isdigit():
        return float(told[:9])
    try:
        moment = parsedate_to_datetime(told)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())
