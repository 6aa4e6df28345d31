"""Local files: inside the roots, regular, not empty, and safe to name to ffmpeg."""

import os
from pathlib import Path

import pytest

from worker.errors import InvalidRequest, JobError, SourceForbidden, SourceNotFound, SourceUnsupported
from worker.sources.base import OpenedSource
from worker.sources.file import FileSource


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "media"
    path.mkdir()
    (path / "talk.mp4").write_bytes(b"movie")
    (tmp_path / "secret.txt").write_bytes(b"secret")
    return path


async def opened(root: Path, url: str) -> OpenedSource:
    async with FileSource([root]).open(url) as source:
        return source


async def refusal(root: Path, url: str) -> JobError:
    with pytest.raises(JobError) as caught:
        await opened(root, url)
    return caught.value


@pytest.mark.parametrize("form", ["{}", "file://{}", "file://localhost{}", "FILE://{}"])
async def test_file_under_a_root_opens(root: Path, form: str) -> None:
    source = await opened(root, form.format(root / "talk.mp4"))
    assert source.input == f"file:{root / 'talk.mp4'}"
    assert source.label == str(root / "talk.mp4")
    assert (source.protocols, source.size_bytes) == (("file",), 5)
    assert source.failure() is None


@pytest.mark.parametrize(
    "name",
    ["-i.mp4", "%03d.mp4", "a:b.mp4", "100%25.mp4", "new\nline.mp4", "q?x#y.mp4", "ü 日.mp4", "concat:x|y.mp4", "'"],
)
async def test_odd_names_are_read_as_names(root: Path, name: str) -> None:
    path = root / name
    path.write_bytes(b"movie")
    assert (await opened(root, path.as_uri())).input == f"file:{path}"
    assert (await opened(root, str(path))).input == f"file:{path}"
    assert (await opened(root, path.as_uri())).label.isprintable()


async def test_path_is_taken_literally_and_url_is_decoded(root: Path) -> None:
    (root / "a%20b.mp4").write_bytes(b"literal")
    (root / "a b.mp4").write_bytes(b"decoded!")
    assert (await opened(root, f"{root}/a%20b.mp4")).size_bytes == 7
    assert (await opened(root, f"file://{root}/a%20b.mp4")).size_bytes == 8


@pytest.mark.parametrize(
    "path", ["../secret.txt", "x/../../secret.txt", "%2e%2e/secret.txt", "..%2fsecret.txt", "../nothing-there"]
)
async def test_climbing_out_is_forbidden_whether_it_exists_or_not(root: Path, path: str) -> None:
    refused = await refusal(root, f"file://{root}/{path}")
    assert isinstance(refused, SourceForbidden)
    assert "LOCAL_SOURCE_ROOTS" in str(refused)


async def test_symlink_counts_as_its_target(root: Path) -> None:
    (root / "inside.mp4").symlink_to(root / "talk.mp4")
    (root / "outside.mp4").symlink_to(root.parent / "secret.txt")
    (root / "loop.mp4").symlink_to(root / "loop.mp4")
    assert (await opened(root, str(root / "inside.mp4"))).input == f"file:{root / 'talk.mp4'}"
    assert isinstance(await refusal(root, str(root / "outside.mp4")), SourceForbidden)
    assert isinstance(await refusal(root, str(root / "loop.mp4")), SourceUnsupported)


async def test_root_may_be_a_symlink(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    assert (await opened(link, str(link / "talk.mp4"))).size_bytes == 5


async def test_sibling_with_the_same_beginning_is_outside(root: Path) -> None:
    sibling = root.parent / "media-private"
    sibling.mkdir()
    (sibling / "x.mp4").write_bytes(b"x")
    assert isinstance(await refusal(root, str(sibling / "x.mp4")), SourceForbidden)


async def test_no_roots_means_no_local_files(root: Path) -> None:
    with pytest.raises(SourceForbidden, match="LOCAL_SOURCE_ROOTS"):
        async with FileSource([]).open(str(root / "talk.mp4")):
            pass


async def test_missing_empty_and_irregular_files_are_told_apart(root: Path) -> None:
    (root / "empty.mp4").touch()
    os.mkfifo(root / "pipe")
    assert isinstance(await refusal(root, str(root / "gone.mp4")), SourceNotFound)
    assert isinstance(await refusal(root, str(root / "talk.mp4/x")), SourceNotFound)
    assert "0 bytes" in str(await refusal(root, str(root / "empty.mp4")))
    assert "not a regular file" in str(await refusal(root, str(root / "pipe")))
    assert "not a regular file" in str(await refusal(root, str(root)))
    assert isinstance(await refusal(Path("/dev"), "/dev/zero"), SourceUnsupported)


@pytest.mark.parametrize(
    "url", ["file:talk.mp4", "file:///a%00b", "file:///a?b", "file:///a#b", "file:///%ff", "file:"]
)
async def test_urls_that_name_no_path_are_invalid(root: Path, url: str) -> None:
    assert isinstance(await refusal(root, url), InvalidRequest)


async def test_other_machines_are_not_supported(root: Path) -> None:
    assert isinstance(await refusal(root, "file://server/share/x.mp4"), SourceUnsupported)


async def test_overlong_name_is_an_answer_not_a_crash(root: Path) -> None:
    assert isinstance(await refusal(root, f"{root}/{'x' * 5000}"), SourceUnsupported)
