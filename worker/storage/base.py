"""Storage is where artifacts go: objects under keys, each with its checksum and a few words of metadata."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StoredObject:
    key: str
    #: `s3://bucket/key` or `file:///…`
    url: str
    size_bytes: int
    #: of the content, as recorded at `put`; empty when the object was not written by us
    sha256: str
    metadata: Mapping[str, str]
    #: changes with every put; what `replacing` is compared by
    version: str


class Storage(Protocol):
    """Failures that a later attempt may cure surface as StorageUploadFailed or DiskFull.

    Keys are relative paths (see `worker.storage.naming`), metadata is lower-case ASCII names, ASCII values;
    anything else is an InvalidRequest, the same one everywhere.
    """

    async def check(self) -> None:
        """Raise ConfigError when artifacts could not be written: no bucket, no rights, no directory."""

    async def head(self, key: str) -> StoredObject | None:
        """The object as it stands, or None. One that is cut off or has 0 bytes counts as absent."""

    async def put(
        self,
        key: str,
        path: Path,
        *,
        content_type: str,
        metadata: Mapping[str, str],
        replacing: StoredObject | None = None,
    ) -> StoredObject:
        """Store a file whole or not at all, and compare what arrived with what was sent.

        An intact object is never overwritten, unless it is the one named by `replacing`: results point to it. What
        comes back is the object that is there afterwards, ours or the one that was there first.
        """

    async def get(self, key: str, path: Path) -> None:
        """Write the object to `path`; OutputCorrupt when its content is not what its sha256 says."""

    async def sweep(self, *, older_than_seconds: float) -> int:
        """Remove what uploads that were cut off left behind, here or elsewhere; returns how many."""

    async def delete(self, key: str) -> None:
        """Remove the object; absent is fine."""

    async def close(self) -> None:
        """Give back threads and connections."""
