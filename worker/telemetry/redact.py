"""Keeps secrets out of whatever we write down: log lines, events, errors stored in the database."""

import re
from collections.abc import Mapping
from typing import Any

REDACTED = "***"
#: a longer text keeps its beginning, where the cause is, and its end
MAX_TEXT_BYTES = 8 * 1024

_SECRET_KEY = re.compile(
    r"password|passwd|passphrase|(^|_)pass$|secret|(?<!lease_)token$|authorization|cookie|credential|signature"
    r"|(api|access|private)[_-]?key",
    re.IGNORECASE,
)

# Every pattern below must stay linear: error texts come from outside, and may be long.
_URL = re.compile(r"\b(?P<scheme>[a-z][a-z0-9+.-]{0,20})://(?P<rest>[^\s\"'<>|\\^`{}]+)", re.IGNORECASE)
_WEB_USERINFO = re.compile(r"^[^/?#]*@")
#: people forget to escape the password in a DSN, and no `@` follows it
_DSN_USERINFO = re.compile(r"^.*@")
_QUERY = re.compile(r"\?[^#]*")
_TRAILING_PUNCTUATION = ".,;:!)]"

#: `password=x`, `token: x`, `"api_key": "x"`, as libpq, HTTP and JSON write them
_ASSIGNMENT = re.compile(
    r"(?P<name>password|passwd|passphrase|secret|(?<!lease_)token|signature|credential|(?:api|access|private)[_-]?key"
    r"(?:[_-]?id)?)(?P<sign>[\"']?\s*[=:]\s*)(?P<value>\"[^\"]*\"|'[^']*'|[^\s,;&\"']+)",
    re.IGNORECASE,
)
_AUTHORIZATION = re.compile(
    r"(?P<name>\bauthorization[\"']?\s*[=:]\s*[\"']?|\bbearer\s+(?=[\w.~+/=-]{16}))[^\r\n\"']+", re.IGNORECASE
)


def redact_text(text: str) -> str:
    """The text without userinfo and query strings of URLs, without named secrets, and not endless."""
    text = _URL.sub(_redact_url, text)
    text = _AUTHORIZATION.sub(rf"\g<name>{REDACTED}", text)
    text = _ASSIGNMENT.sub(rf"\g<name>\g<sign>{REDACTED}", text)
    return _shorten(text)


def redact_value(value: Any, *, key: str = "") -> Any:
    """Any value of a log line or an event, looked through to its leaves."""
    if is_secret_key(key) and value not in (None, ""):
        return REDACTED
    match value:
        case str():
            return redact_text(value)
        case Mapping():
            return {name: redact_value(item, key=str(name)) for name, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [redact_value(item) for item in value]
        case bool() | int() | float() | None:
            return value
        case _:
            return redact_text(str(value))


def is_secret_key(key: str) -> bool:
    return _SECRET_KEY.search(key) is not None


def _redact_url(match: re.Match[str]) -> str:
    rest = match["rest"].rstrip(_TRAILING_PUNCTUATION)
    punctuation = match["rest"][len(rest) :]
    userinfo = _WEB_USERINFO if match["scheme"].lower() in {"http", "https", "s3"} else _DSN_USERINFO
    rest = userinfo.sub(f"{REDACTED}@", rest, count=1)
    rest = _QUERY.sub(f"?{REDACTED}", rest, count=1)
    return f"{match['scheme']}://{rest}{punctuation}"


def _shorten(text: str) -> str:
    encoded = text.encode(errors="replace")
    if len(encoded) <= MAX_TEXT_BYTES:
        return text
    half = MAX_TEXT_BYTES // 2 - 8
    first, last = encoded[:half].decode(errors="ignore"), encoded[-half:].decode(errors="ignore")
    return f"{first}\n… cut …\n{last}"
