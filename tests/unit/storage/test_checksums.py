"""S3's spellings of a checksum."""

import base64
import hashlib
from pathlib import Path

from worker.storage.checksums import file_checksums


def b64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


def test_whole_object_is_compared_by_its_own_checksum(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abcdef")
    sums = file_checksums(tmp_path / "f", part_bytes=10)
    assert sums.size_bytes == 6
    assert sums.agrees_with(b64(hashlib.sha256(b"abcdef").digest()))
    assert not sums.agrees_with(b64(hashlib.sha256(b"abcdeg").digest()))


def test_object_in_parts_is_compared_by_the_checksum_of_checksums(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abcdef")
    sums = file_checksums(tmp_path / "f", part_bytes=4)
    parts = hashlib.sha256(b"abcd").digest() + hashlib.sha256(b"ef").digest()
    assert sums.agrees_with(b64(hashlib.sha256(parts).digest()) + "-2")
    assert not sums.agrees_with(b64(hashlib.sha256(b"abcdef").digest()) + "-2")
