"""Which source answers, and which strings never get that far."""

from contextlib import AbstractAsyncContextManager, nullcontext

import pytest

from worker.errors import InvalidRequest, SourceUnsupported
from worker.sources.base import OpenedSource, public_label
from worker.sources.catalog import SourceCatalog


class Recorder:
    def __init__(self, *schemes: str) -> None:
        self.schemes = frozenset(schemes)
        self.opened: list[str] = []

    def open(self, url: str) -> AbstractAsyncContextManager[OpenedSource]:
        self.opened.append(url)
        return nullcontext(OpenedSource(url, url, (), size_bytes=1))


@pytest.mark.parametrize("url", ["https://x/y", "HTTPS://x/y", "http://x"])
async def test_scheme_chooses_the_source(url: str) -> None:
    web, files = Recorder("http", "https"), Recorder("file")
    async with SourceCatalog([web, files]).open(url):
        assert web.opened == [url]
    assert files.opened == []


@pytest.mark.parametrize("url", ["/media/a.mp4", "file:///media/a.mp4", "/media/100% : sure.mp4"])
async def test_absolute_path_is_a_file(url: str) -> None:
    files = Recorder("file")
    async with SourceCatalog([files]).open(url):
        assert files.opened == [url]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x/y",
        "concat:/etc/passwd|/etc/hosts",
        "subfile,,start,0,end,9,,:/etc/passwd",
        "data:text/plain,x",
        "rtsp://x",
        "C:\\a.mp4",
        "lavfi:x",
        "fd:3",
    ],
)
def test_unknown_kinds_are_refused_with_the_known_ones(url: str) -> None:
    with pytest.raises((SourceUnsupported, InvalidRequest)) as caught:
        SourceCatalog([Recorder("http", "https"), Recorder("file")]).open(url)
    if isinstance(caught.value, SourceUnsupported):
        assert "file://, http://, https://" in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "-",
        "-i",
        "--help",
        "talk.mp4",
        "./talk.mp4",
        "https://x/\n",
        "/a\0b",
        "/a\x1bb",
        "http://[::1",
        "\ud800://x",
    ],
)
def test_strings_that_are_no_source_are_invalid(url: str) -> None:
    with pytest.raises(InvalidRequest):
        SourceCatalog([Recorder("http", "https"), Recorder("file")]).open(url)


def test_label_holds_no_secret() -> None:
    label = public_label("https://user:pass@host.example:8443/talk.mp4?X-Amz-Signature=abc#t=5")
    assert label == "https://host.example:8443/talk.mp4"
