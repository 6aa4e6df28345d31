"""What every storage promises, whatever it is made of."""

import asyncio
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.contract.storage.conftest import Subject
from worker.errors import InvalidRequest, OutputCorrupt, StorageUploadFailed
from worker.storage.base import StoredObject

KEY = "out/4f2c/clip.mp4"
MakeFile = Callable[[bytes], Path]


async def put(
    subject: Subject, path: Path, key: str = KEY, *, replacing: StoredObject | None = None, **metadata: str
) -> StoredObject:
    return await subject.storage.put(key, path, content_type="video/mp4", metadata=metadata, replacing=replacing)


async def test_check_passes_and_leaves_nothing(subject: Subject) -> None:
    await subject.storage.check()
    assert subject.names() == []


async def test_put_tells_what_head_tells(subject: Subject, make_file: MakeFile) -> None:
    stored = await put(subject, make_file(b"moving pictures"), spec="abc123")
    assert stored.size_bytes == 15
    assert stored.sha256 == hashlib.sha256(b"moving pictures").hexdigest()
    assert stored.metadata == {"spec": "abc123"}
    assert stored.url.endswith(KEY)
    assert await subject.storage.head(KEY) == stored


async def test_get_brings_the_bytes_back(subject: Subject, make_file: MakeFile, tmp_path: Path) -> None:
    await put(subject, make_file(b"moving pictures"))
    await subject.storage.get(KEY, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"moving pictures"


async def test_absent_object_has_no_head(subject: Subject) -> None:
    assert await subject.storage.head(KEY) is None


async def test_get_of_absent_object_says_so(subject: Subject, tmp_path: Path) -> None:
    with pytest.raises(StorageUploadFailed, match=r"clip\.mp4"):
        await subject.storage.get(KEY, tmp_path / "back")
    assert not (tmp_path / "back").exists()


async def test_delete_removes_and_may_be_repeated(subject: Subject, make_file: MakeFile) -> None:
    await put(subject, make_file(b"x"))
    await subject.storage.delete(KEY)
    assert await subject.storage.head(KEY) is None
    assert subject.names() == []
    await subject.storage.delete(KEY)


async def test_put_replaces_bytes_and_metadata_of_the_object_it_names(
    subject: Subject, make_file: MakeFile, tmp_path: Path
) -> None:
    first = await put(subject, make_file(b"first"), spec="1")
    second = await put(subject, make_file(b"second, and longer"), replacing=first, spec="2")
    assert second.metadata == {"spec": "2"}
    assert await subject.storage.head(KEY) == second
    await subject.storage.get(KEY, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"second, and longer"


async def test_intact_object_is_not_overwritten(subject: Subject, make_file: MakeFile, tmp_path: Path) -> None:
    first = await put(subject, make_file(b"first"), spec="1")
    assert await put(subject, make_file(b"second, and longer"), spec="2") == first
    await subject.storage.get(KEY, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"first"


async def test_object_that_changed_since_it_was_looked_at_is_not_replaced(
    subject: Subject, make_file: MakeFile
) -> None:
    first = await put(subject, make_file(b"first"))
    second = await put(subject, make_file(b"second"), replacing=first)
    assert await put(subject, make_file(b"too late"), replacing=first) == second
    assert await subject.storage.head(KEY) == second


async def test_damaged_object_is_replaced_without_asking(subject: Subject, make_file: MakeFile, tmp_path: Path) -> None:
    await put(subject, make_file(b"moving pictures"))
    subject.tamper(KEY, b"moving pic")
    await put(subject, make_file(b"moving pictures"))
    await subject.storage.get(KEY, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"moving pictures"


@pytest.mark.parametrize("left", [b"moving pic", b""], ids=["cut off", "empty"])
async def test_truncated_object_counts_as_absent(subject: Subject, make_file: MakeFile, left: bytes) -> None:
    await put(subject, make_file(b"moving pictures"))
    subject.tamper(KEY, left)
    assert await subject.storage.head(KEY) is None


async def test_get_detects_other_bytes_of_the_same_length(
    subject: Subject, make_file: MakeFile, tmp_path: Path
) -> None:
    await put(subject, make_file(b"moving pictures"))
    subject.tamper(KEY, b"moving pidgeons")
    with pytest.raises(OutputCorrupt, match="does not hold what was stored"):
        await subject.storage.get(KEY, tmp_path / "back")
    assert not (tmp_path / "back").exists()


async def test_foreign_object_has_no_checksum(subject: Subject) -> None:
    subject.place(KEY, b"from elsewhere")
    found = await subject.storage.head(KEY)
    assert found is not None
    assert (found.size_bytes, found.sha256, dict(found.metadata)) == (14, "", {})


async def test_large_file_survives_the_round_trip(subject: Subject, make_file: MakeFile, tmp_path: Path) -> None:
    content = os.urandom(20_000_000)
    stored = await put(subject, make_file(content))
    assert stored.sha256 == hashlib.sha256(content).hexdigest()
    assert await subject.storage.head(KEY) == stored
    await subject.storage.get(KEY, tmp_path / "back")
    assert hashlib.sha256((tmp_path / "back").read_bytes()).hexdigest() == stored.sha256


async def test_concurrent_puts_of_one_key_leave_one_whole_object(
    subject: Subject, make_file: MakeFile, tmp_path: Path
) -> None:
    contents = [bytes([65 + i]) * (1000 + i) for i in range(12)]
    stored = await asyncio.gather(*(put(subject, make_file(content)) for content in contents))
    found = await subject.storage.head(KEY)
    # the first one wins, and everybody is told which that was
    assert all(told == found for told in stored)
    await subject.storage.get(KEY, tmp_path / "back")
    content = (tmp_path / "back").read_bytes()
    assert content in contents
    assert found is not None
    assert found.sha256 == hashlib.sha256(content).hexdigest()


async def test_concurrent_puts_of_many_keys_all_arrive(subject: Subject, make_file: MakeFile) -> None:
    keys = [f"out/{i}/clip.mp4" for i in range(24)]
    await asyncio.gather(*(put(subject, make_file(key.encode()), key) for key in keys))
    assert subject.names() == sorted(keys)


async def test_cancelled_put_publishes_nothing(subject: Subject, make_file: MakeFile) -> None:
    content = os.urandom(60_000_000)
    task = asyncio.create_task(put(subject, make_file(content)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await subject.storage.head(KEY) is None
    assert subject.names() == []


async def test_missing_input_file_fails_with_its_name(subject: Subject, tmp_path: Path) -> None:
    with pytest.raises(StorageUploadFailed, match="nowhere"):
        await put(subject, tmp_path / "nowhere")


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/etc/x",
        "../x",
        "a/../../x",
        "a//b",
        "a/./b",
        "a/",
        ".hidden/x",
        "a\\b",
        "a\nb",
        "x" * 300,
        "a/" * 600 + "b",
    ],
)
async def test_key_that_is_no_plain_path_is_refused(subject: Subject, make_file: MakeFile, key: str) -> None:
    path = make_file(b"x")
    for call in (
        put(subject, path, key),
        subject.storage.head(key),
        subject.storage.get(key, path),
        subject.storage.delete(key),
    ):
        with pytest.raises(InvalidRequest, match="storage key"):
            await call


@pytest.mark.parametrize(
    "metadata", [{"Upper": "x"}, {"a b": "x"}, {"a": "ümlaut"}, {"a": "line\nbreak"}, {"a": "x" * 3000}]
)
async def test_metadata_that_s3_would_change_is_refused(
    subject: Subject, make_file: MakeFile, metadata: dict[str, str]
) -> None:
    with pytest.raises(InvalidRequest, match="metadata"):
        await put(subject, make_file(b"x"), **metadata)


async def test_key_with_spaces_and_other_scripts_works(subject: Subject, make_file: MakeFile, tmp_path: Path) -> None:
    key = "kunde ä/日本 100%#?+&=/clip (1).mp4"
    await put(subject, make_file(b"x"), key)
    assert await subject.storage.head(key) is not None
    assert subject.names() == [key]
    await subject.storage.get(key, tmp_path / "back")


async def test_sweep_removes_nothing_that_is_finished_or_young(subject: Subject, make_file: MakeFile) -> None:
    await put(subject, make_file(b"moving pictures"))
    assert await subject.storage.sweep(older_than_seconds=3600) == 0
    assert subject.names() == [KEY]
