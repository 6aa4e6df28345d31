"""The job spec, version 1: flat, strict, and every problem told at once."""

import hashlib
import json
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from worker.domain.media import CaptionWish, Mode, Quality, TranscriptWish
from worker.errors import InvalidRequest

#: a spec is a request, not a data store; PostgreSQL would take a thousand times more
MAX_SPEC_BYTES = 64 * 1024
#: longer than any medium we know
MAX_SECONDS = 60 * 60 * 1000
MAX_RENDITIONS = 6

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


def _as_heights(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        raise PydanticCustomError("renditions", "must be a list of heights, such as [720, 360]")
    if len(value) > MAX_RENDITIONS:
        raise PydanticCustomError("renditions", "must be at most {most} heights", {"most": MAX_RENDITIONS})
    return tuple(value)


def _check_heights(heights: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(heights)) < len(heights):
        raise PydanticCustomError("renditions", "must not name a height twice")
    if any(height % 2 for height in heights):
        raise PydanticCustomError("renditions", "must be even: pictures are stored in pairs of rows")
    return heights


def _parse_poster(value: Any) -> bool | float:
    if isinstance(value, bool):
        return value
    try:
        return parse_seconds(value)
    except PydanticCustomError:
        message = 'must be true, false, or a time in the clip: seconds or "hh:mm:ss.mmm"'
        raise PydanticCustomError("poster", message) from None


def _parse_sprite(value: Any) -> Any:
    if isinstance(value, bool):
        return Sprite() if value else None
    if value is not None and not isinstance(value, dict | Sprite):
        raise PydanticCustomError("sprite", 'must be true, false, or an object with "columns" and "every"')
    return value


def _parse_transcript(value: Any) -> TranscriptWish:
    if isinstance(value, bool):
        return TranscriptWish.REQUIRED if value else TranscriptWish.NONE
    if value in (TranscriptWish.BEST_EFFORT, TranscriptWish.REQUIRED):
        return TranscriptWish(value)
    raise PydanticCustomError("transcript", 'must be true, false, "best-effort" or "required"')


def _parse_pages(value: Any) -> Any:
    if value is None or value == "auto":
        return PagesWish()
    if value == "never":
        return None
    if not isinstance(value, dict | PagesWish):
        raise PydanticCustomError("pages", 'must be "auto", "never", or an object with "seconds" and "partitions"')
    return value


Seconds = Annotated[float, BeforeValidator(parse_seconds)]
Height = Annotated[int, Field(strict=True, ge=16, le=8192)]
_STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)


class Sprite(BaseModel):
    """A sheet of small pictures, for what a player shows above its time bar."""

    model_config = _STRICT

    columns: Annotated[int, Field(ge=1, le=50)] = 10
    #: seconds from one picture to the next; None: chosen to fit the clip
    every: Annotated[float, Field(ge=0.1, le=3600)] | None = None


class PagesWish(BaseModel):
    """How a job is split. Whoever says how long a page is wants one that is longer than that to be split."""

    model_config = _STRICT

    seconds: Annotated[float, Field(ge=1, le=3600)] | None = None
    partitions: Annotated[int, Field(ge=1, le=64)] | None = None


class ClipRequest(BaseModel):
    """What to clip, from where to where, and what to make of it."""

    model_config = _STRICT

    source: Annotated[str, Field(min_length=1, max_length=8192)]
    start: Seconds | None = None
    end: Seconds | None = None
    mode: Annotated[Mode, Field(strict=False)] = Mode.SMART
    #: copy only: keep pictures before `start` in the file and have players skip them
    hide_lead: bool = False
    max_height: Height | None = None
    quality: Annotated[Quality, Field(strict=False)] = Quality.GOOD
    renditions: Annotated[tuple[Height, ...], BeforeValidator(_as_heights), AfterValidator(_check_heights)] = ()
    #: LUFS
    loudness: Annotated[float, Field(ge=-70, le=-5)] | None = None
    transcript: Annotated[TranscriptWish, BeforeValidator(_parse_transcript)] = TranscriptWish.REQUIRED
    captions: Annotated[CaptionWish, Field(strict=False)] | None = None
    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")] | None = None
    poster: Annotated[bool | float, BeforeValidator(_parse_poster)] = True
    sprite: Annotated[Sprite | None, BeforeValidator(_parse_sprite)] = None
    waveform: bool = False
    #: None: the job is never split
    pages: Annotated[PagesWish | None, BeforeValidator(_parse_pages)] = PagesWish()
    key_prefix: Annotated[str, BeforeValidator(_check_key_prefix), Field(max_length=512)] | None = None
    metadata: dict[str, Any] | None = None

    @property
    def fingerprint(self) -> str:
        """Same fingerprint = same artifacts wanted; stored with each of them."""
        wanted = self.model_dump(mode="json", exclude={"metadata", "key_prefix", "pages"})
        return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()


def parse_request(spec: Any) -> ClipRequest:
    """The request, or InvalidRequest naming every problem."""
    if not isinstance(spec, dict):
        raise InvalidRequest(f"the job's data must be a JSON object, not {_kind(spec)}")
    size = len(json.dumps(spec, ensure_ascii=False, default=str).encode(errors="replace"))
    if size > MAX_SPEC_BYTES:
        raise InvalidRequest(f"the job's data has {size:,} bytes; at most {MAX_SPEC_BYTES:,} are accepted")
    problems = [*_range_problems(spec), *_copy_problems(spec), *_caption_problems(spec)]
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


def _copy_problems(spec: dict[str, Any]) -> list[str]:
    is_copy = spec.get("mode") == Mode.COPY
    if is_copy and spec.get("loudness") is not None:
        return ["loudness: mode copy changes no sound; use mode smart"]
    if not is_copy and spec.get("hide_lead") is True:
        return ["hide_lead: only mode copy has a lead to hide"]
    return []


def _caption_problems(spec: dict[str, Any]) -> list[str]:
    if spec.get("captions") is not None and spec.get("transcript") is False:
        return ["captions: there is nothing to show without a transcript"]
    return []


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
