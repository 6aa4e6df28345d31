"""From what was typed to a job spec that a worker will accept."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from worker.domain.request import MAX_SPEC_BYTES, parse_request
from worker.errors import InvalidRequest


def build_spec(source: str, wishes: Mapping[str, Any]) -> dict[str, Any]:
    """Only what was asked for is written into the spec: the worker's defaults are its own."""
    spec = {"source": locate(source), **{name: wish for name, wish in wishes.items() if wish is not None}}
    parse_request(spec)
    return spec


def read_spec(name: str) -> dict[str, Any]:
    """A spec from a file, or from stdin for `-`."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        spec = json.loads(text)
    except OSError as exc:
        raise InvalidRequest(f"--spec {name} cannot be read: {exc.strerror or exc}") from exc
    except (ValueError, RecursionError) as exc:
        raise InvalidRequest(f"--spec {name} is not JSON: {exc}") from exc
    parse_request(spec)
    return dict(spec)


def parse_metadata(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InvalidRequest(f"--metadata is not JSON: {exc}") from exc


def locate(source: str) -> str:
    """A URL as it is; a path of this machine as a file:// URL."""
    if "://" in source or len(source) > MAX_SPEC_BYTES:
        return source
    try:
        path = Path(source).expanduser()
        is_there = path.is_file()
    except (OSError, ValueError, RuntimeError):
        is_there = False
    if not is_there:
        raise InvalidRequest(
            f"source: there is no file {source!r} here; give a file's path, or an http(s)://, s3:// or file:// URL"
        )
    return path.resolve().as_uri()


def is_outside(url: str, roots: Sequence[Path]) -> bool:
    """Will a worker with these LOCAL_SOURCE_ROOTS refuse it?"""
    parts = urlsplit(url)
    if parts.scheme != "file":
        return False
    try:
        path = Path(unquote(parts.path)).resolve()
    except ValueError:
        return True
    return not any(path.is_relative_to(root.resolve()) for root in roots)
