"""The job spec, version 1: flat, strict, and every problem told at once."""

import hashlib
import json
import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from worker.domain.media import Mode
from worker.errors import InvalidRequest

#: a spec is a request, not a data store; PostgreSQL would take a thousand times more
MAX_SPEC_BYTES = 64 * 1024
#: longer than any medium we know
MAX_SECONDS = 60 * 60 * 1000

_CLOCK = re.compile(r"(?:(?:(\d+):)?([0-5]?\d):)?([0-5]?\d(?:\.\d{1,6})?)")
_KEY_PREFIX = re.compile(r"[A-Za-z0-9_.=@-]+(?:/[A-Za-z0-9_.=@-]+)*")


def parse_seconds(value: Any) -> float:
    """Seconds as a number, or as text: `61.5`, `1:01.5`, `00:01:01.500`."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise PydanticCustomError("seconds", 'must be seconds or "hh:mm:ss.mmm"')
    if isinstance(value, str):
        clock = _CLOCK.fullmatch(value.strip())
        if clock:
            hours, minutes, seconds = clock.groups()
            return int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(seconds)
        try:
            value = float(value)
        except ValueError:
            raise PydanticCustomError("seconds", 'must be seconds or "hh:mm:ss.mmm"') from None
    if not 0 <= value <= MAX_SECONDS:  # also refuses NaN
        raise PydanticCustomError("seconds", "must lie between 0 and {most}", {"most": MAX_SECONDS})
    return float(value)


def _check_key_prefix(value: Any) -> Any:
    if isinstance(value, str) and (not _KEY_PREFIX.fullmatch(value) or ".." in value.split("/")):
        raise PydanticCustomError(
            "key_prefix", "must be path segments of letters, digits and _.=@- joined by single slashes"
        )
    return value


Seconds = Annotated[float, BeforeValidator(parse_seconds)]


class ClipRequest(BaseModel):
    """What to clip, from where to where, and what to make of it."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    source: Annotated[str, Field(min_length=1, max_length=8192)]
    start: Seconds | None = None
    end: Seconds | None = None
    mode: Annotated[Mode, Field(strict=False)] = Mode.SMART
    max_height: Annotated[int, Field(ge=16, le=8192)] | None = None
    transcript: bool = True
    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")] | None = None
    poster: bool = True
    key_prefix: Annotated[str, BeforeValidator(_check_key_prefix), Field(max_length=512)] | None = None
    metadata: dict[str, Any] | None = None

    @property
    def fingerprint(self) -> str:
        """Same fingerprint = same artifacts wanted; stored with each of them."""
        wanted = self.model_dump(mode="json", exclude={"metadata", "key_prefix"})
        return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()


def parse_request(spec: Any) -> ClipRequest:
    """The request, or InvalidRequest naming every problem."""
    if not isinstance(spec, dict):
        raise InvalidRequest(f"the job's data must be a JSON object, not {_kind(spec)}")
    size = len(json.dumps(spec, ensure_ascii=False, default=str).encode(errors="replace"))
    if size > MAX_SPEC_BYTES:
        raise InvalidRequest(f"the job's data has {size:,} bytes; at most {MAX_SPEC_BYTES:,} are accepted")
    problems = _range_problems(spec)
    try:
        request = ClipRequest.model_validate(spec)
    except ValidationError as exc:
        raise InvalidRequest("; ".join(_problems(exc) + problems)) from None
    if problems:
        raise InvalidRequest("; ".join(problems))
    return request


def _range_problems(spec: dict[str, Any]) -> list[str]:
    """Looked for apart from the fields, so that it is told beside their problems and not after them."""
    try:
        start, end = (parse_seconds(spec[name]) if spec.get(name) is not None else None for name in ("start", "end"))
    except PydanticCustomError:
        return []
    return ["end must be after start"] if end is not None and end <= (start or 0.0) else []


def _problems(exc: ValidationError) -> list[str]:
    problems = []
    for error in exc.errors(include_url=False, include_context=False):
        where = ".".join(str(part) for part in error["loc"])
        what = "unknown key" if error["type"] == "extra_forbidden" else error["msg"]
        what = "is required" if error["type"] == "missing" else what
        problems.append(f"{where}: {what}" if where else what)
    return problems


def _kind(spec: Any) -> str:
    return {"NoneType": "nothing", "list": "an array", "str": "a string", "bool": "a boolean"}.get(
        type(spec).__name__, "a number"
    )
