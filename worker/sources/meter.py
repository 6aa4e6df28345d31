"""Counts what is taken from an origin, and says when it is enough: some sources never end."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from worker.errors import SourceTooLarge
from worker.sources.base import Traffic
from worker.sources.ranges import RangeReader


class MeteredReader:
    """A RangeReader whose bytes are counted in `traffic`, at most `max_bytes` of them."""

    is_remote = True

    def __init__(self, reader: RangeReader, traffic: Traffic, *, max_bytes: int | None, label: str) -> None:
        self.size_bytes = reader.size_bytes
        self.etag = reader.etag
        self._reader = reader
        self._traffic = traffic
        self._max_bytes = max_bytes
        self._label = label

    async def read(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        self._refuse_excess()
        async with aclosing(self._reader.read(start, end)) as chunks:
            async for chunk in chunks:
                self._traffic.bytes_fetched += len(chunk)
                self._refuse_excess()
                yield chunk

    def _refuse_excess(self) -> None:
        if self._max_bytes is not None and self._traffic.bytes_fetched > self._max_bytes:
            raise SourceTooLarge(f"{self._label}: more than {self._max_bytes} bytes were read from it (SOURCE_MAX_MB)")
