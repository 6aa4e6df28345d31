"""What is true of a directory alone: full disks, crashes half-way, nothing lying about."""

import asyncio
import errno
import os
from pathlib import Path

import pytest

from worker.errors import ConfigError, DiskFull, StorageUploadFailed
from worker.storage.local import LocalStorage

KEY = "out/clip.mp4"


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    path = tmp_path / "clip.mp4"
    path.write_bytes(os.urandom(3_000_000))
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


async def put(storage: LocalStorage, path: Path):
    return await storage.put(KEY, path, content_type="video/mp4", metadata={})


async def test_put_leaves_the_object_and_its_record(root: Path, clip: Path) -> None:
    await put(LocalStorage(root), clip)
    assert files(root) == {".lock", KEY, "out/.clip.mp4.json"}


async def test_full_disk_is_told_and_leaves_nothing(root: Path, clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFull, match="no space left"):
        await put(LocalStorage(root), clip)
    assert files(root) == set()


async def test_cancelled_put_leaves_no_temporary_file(root: Path, clip: Path) -> None:
    task = asyncio.create_task(put(LocalStorage(root), clip))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    # The copy runs in a thread: it may have been through before it could be stopped, but never half.
    assert not [name for name in files(root) if name.endswith(".part")]
    found = await LocalStorage(root).head(KEY)
    assert found is None or found.size_bytes == clip.stat().st_size


async def test_failure_between_object_and_record_makes_it_unknown(
    root: Path, clip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(root)
    await put(storage, clip)
    (root / KEY).write_bytes(b"")  # damaged, so that it is written anew
    clip.write_bytes(b"second attempt")
    real_replace = Path.replace

    def fail_at_the_record(self: Path, target: Path) -> Path:
        if target.name.endswith(".json"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real_replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail_at_the_record)
        with pytest.raises(StorageUploadFailed):
            await put(storage, clip)
    found = await storage.head(KEY)
    assert found is not None
    assert (found.size_bytes, found.sha256) == (14, "")


async def test_damaged_record_makes_the_object_unknown(root: Path, clip: Path) -> None:
    storage = LocalStorage(root)
    await put(storage, clip)
    (root / "out/.clip.mp4.json").write_text('{"size_bytes": 3')
    found = await storage.head(KEY)
    assert found is not None
    assert found.sha256 == ""


async def test_check_explains_a_directory_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match="STORAGE_URL"):
        await LocalStorage(tmp_path / "file" / "store").check()


async def test_check_makes_the_directory(root: Path) -> None:
    await LocalStorage(root).check()
    assert root.is_dir()
    assert files(root) == set()


async def test_sweep_removes_parts_that_a_killed_process_left(tmp_path: Path) -> None:
    part = tmp_path / "job" / ".clip.mp4.0123456789ab.part"
    part.parent.mkdir()
    part.write_bytes(b"half")
    storage = LocalStorage(tmp_path)
    assert await storage.sweep(older_than_seconds=3600) == 0
    os.utime(part, (0, 0))
    assert await storage.sweep(older_than_seconds=3600) == 1
    assert not part.exists()
