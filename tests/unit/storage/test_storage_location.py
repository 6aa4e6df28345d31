"""STORAGE_URL is written by people."""

from pathlib import Path

import pytest

from worker.errors import ConfigError
from worker.s3 import S3Options
from worker.storage.local import LocalStorage
from worker.storage.location import open_storage
from worker.storage.s3 import S3Storage


async def test_file_url_names_a_directory(tmp_path: Path) -> None:
    storage = open_storage(f"file://{tmp_path}/with%20space", s3=S3Options())
    assert isinstance(storage, LocalStorage)
    await storage.check()
    assert (tmp_path / "with space").is_dir()


async def test_relative_file_url_starts_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    await open_storage("file://./artifacts", s3=S3Options()).check()
    assert (tmp_path / "artifacts").is_dir()


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/", "s3://bucket/some/prefix", "s3://bucket/prefix/"])
async def test_s3_url_names_bucket_and_prefix(url: str) -> None:
    storage = open_storage(url, s3=S3Options())
    assert isinstance(storage, S3Storage)
    await storage.close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "artifacts",
        "/var/lib",
        "file:artifacts",
        "file://host/dir",
        "s3://",
        "s3:///x",
        "http://x/y",
        "s3://b/../c",
        "S3",
    ],
)
def test_other_urls_are_refused_with_the_setting_s_name(url: str) -> None:
    with pytest.raises(ConfigError, match="STORAGE_URL"):
        open_storage(url, s3=S3Options())


def test_keys_in_the_url_are_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        open_storage("https://AKIA:secret@s3.example/bucket?token=secret", s3=S3Options())
    assert "secret" not in str(caught.value)


def test_options_do_not_print_secrets() -> None:
    assert "hidden" not in repr(S3Options(access_key_id="a", secret_access_key="hidden", session_token="hidden"))
