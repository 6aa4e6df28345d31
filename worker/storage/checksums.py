"""The checksums S3 keeps of an object, computed here to compare."""

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FileChecksums:
    size_bytes: int
    sha256: str
    #: of the sha256s of the parts: what S3 keeps of an object that was uploaded in parts
    sha256_of_parts: str

    def agrees_with(self, reported: str) -> bool:
        """Compare with S3's own spelling: base64, and `-N` for N parts."""
        digest, _, parts = reported.partition("-")
        return base64.b64decode(digest).hex() == (self.sha256_of_parts if parts else self.sha256)


def file_checksums(path: Path, *, part_bytes: int) -> FileChecksums:
    whole, of_parts, size = hashlib.sha256(), hashlib.sha256(), 0
    with path.open("rb") as file:
        while part := file.read(part_bytes):
            whole.update(part)
            of_parts.update(hashlib.sha256(part).digest())
            size += len(part)
    return FileChecksums(size, whole.hexdigest(), of_parts.hexdigest())
