"""Going on where it broke."""

from collections.abc import AsyncGenerator

import pytest

from worker.errors import SourceNotFound, UpstreamFailure
from worker.sources.resume import resumed

CONTENT = bytes(range(256)) * 16384


class Breaking:
    """Breaks off after each of `lengths`, then serves the rest."""

    size_bytes = len(CONTENT)
    etag = None

    def __init__(self, *lengths: int, error: Exception | None = None) -> None:
        self.lengths = list(lengths)
        self.starts: list[int] = []
        self.error = error or UpstreamFailure("broke off")

    async def read(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        self.starts.append(start)
        if not self.lengths:
            yield CONTENT[start:end]
            return
        yield CONTENT[start : start + self.lengths.pop(0)]
        raise self.error


async def read_all(reader: Breaking, start: int = 0) -> bytes:
    return b"".join([chunk async for chunk in resumed(reader, start, len(CONTENT), delays=(0, 0))])


async def test_goes_on_at_the_byte_where_it_broke() -> None:
    reader = Breaking(100, 50)
    assert await read_all(reader, 7) == CONTENT[7:]
    assert reader.starts == [7, 107, 157]


async def test_gives_up_after_its_tries() -> None:
    reader = Breaking(100, 50, 20)
    with pytest.raises(UpstreamFailure, match="broke off"):
        await read_all(reader)
    assert reader.starts == [0, 100, 150]


async def test_real_progress_gives_the_tries_back() -> None:
    reader = Breaking(10, 1 << 20, 10, 1 << 20)
    assert await read_all(reader) == CONTENT


async def test_final_errors_are_not_retried() -> None:
    reader = Breaking(100, error=SourceNotFound("gone"))
    with pytest.raises(SourceNotFound):
        await read_all(reader)
    assert reader.starts == [0]
