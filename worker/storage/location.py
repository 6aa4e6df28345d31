"""Turns STORAGE_URL into a storage."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from worker.errors import ConfigError, InvalidRequest
from worker.s3 import S3Connection, S3Options
from worker.storage.base import Storage
from worker.storage.local import LocalStorage
from worker.storage.s3 import S3Storage

_FORMS = "file:///absolute/dir, file://./relative/dir or s3://bucket/prefix"


def open_storage(url: str, *, s3: S3Options) -> Storage:
    """The storage a URL names; whether it can be written to is what `check` finds out."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "file" and rest.startswith(("/", "./")):
        return LocalStorage(Path(unquote(rest)))
    bucket, _, prefix = rest.partition("/")
    if scheme == "s3" and bucket:
        try:
            return S3Storage(bucket, prefix.strip("/"), S3Connection(s3))
        except InvalidRequest as exc:
            raise ConfigError(f"STORAGE_URL: the prefix {prefix!r} is not a plain relative path") from exc
    raise ConfigError(f"STORAGE_URL {public_form(url)!r} is not one of {_FORMS}")


def public_form(url: str) -> str:
    """Somebody may have written keys into it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.scheme else url
