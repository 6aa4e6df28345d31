"""The index that fragmented films are given."""

import os
import struct
from collections.abc import AsyncGenerator
from pathlib import Path

import av
import pytest

from tests.contract.sources.films import make_film, make_reel
from worker.sources.indexed import IndexedReader, Insertion, missing_index

INDEXABLE = ["fragments-with-mfra", "fragments-without-index"]


class Bytes:
    is_remote = True
    etag = None

    def __init__(self, content: bytes | bytearray) -> None:
        self.content = content
        self.size_bytes = len(content)
        self.bytes_read = 0

    async def read(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        self.bytes_read += end - start
        yield bytes(self.content[start:end])


@pytest.fixture(scope="module")
def reel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_reel(tmp_path_factory.mktemp("reel") / "reel.mp4")


async def insertion_for(content: bytes | bytearray) -> Insertion | None:
    reader = Bytes(content)
    return await missing_index(reader, reader)


def packets(path: Path, seconds: float) -> list[tuple[object, ...]]:
    with av.open(str(path)) as container:
        container.seek(round(seconds * av.time_base), backward=True)
        return [
            (packet.stream_index, packet.pts, packet.dts, packet.duration, packet.is_keyframe, bytes(packet))
            for packet in container.demux()
            if packet.size
        ]


@pytest.mark.parametrize("layout", INDEXABLE)
async def test_indexed_film_holds_the_same_packets(reel: Path, tmp_path: Path, layout: str) -> None:
    plain = make_film(reel, tmp_path / "plain.mp4", layout, loops=3)
    insertion = await insertion_for(plain.read_bytes())
    assert insertion is not None
    reader = IndexedReader(Bytes(plain.read_bytes()), insertion)
    indexed = tmp_path / "indexed.mp4"
    indexed.write_bytes(b"".join([chunk async for chunk in reader.read(0, reader.size_bytes)]))
    assert packets(indexed, 0) == packets(plain, 0)
    with av.open(str(indexed)) as one, av.open(str(plain)) as other:
        assert one.duration == pytest.approx(other.duration, abs=50_000)
    for seconds in (0.5, 7.9, 8.05, 19.9, 29.5):
        # it may begin a fragment earlier, never later, and with no gap
        found, wanted = packets(indexed, seconds), packets(plain, seconds)
        for stream in (0, 1):
            tail = [packet for packet in found if packet[0] == stream]
            least = [packet for packet in wanted if packet[0] == stream]
            assert tail[-len(least) :] == least
            assert len(tail) <= len(least) + 100


async def test_any_part_of_an_indexed_film_can_be_read() -> None:
    content = bytes(range(200))
    reader = IndexedReader(Bytes(content), Insertion(50, 180, b"x" * 30))
    whole = content[:50] + b"x" * 30 + content[50:180]
    assert reader.size_bytes == len(whole)
    for start in range(0, len(whole), 7):
        for end in range(start + 1, len(whole) + 1, 11):
            assert b"".join([chunk async for chunk in reader.read(start, end)]) == whole[start:end]


async def test_listed_fragments_are_not_walked(reel: Path, tmp_path: Path) -> None:
    film = make_film(reel, tmp_path / "film.mp4", "fragments-with-mfra", loops=30)
    kept, passing = Bytes(film.read_bytes()), Bytes(film.read_bytes())
    assert await missing_index(kept, passing) is not None
    assert passing.bytes_read < 10_000


@pytest.mark.parametrize(
    "layout", ["index-first", "index-last", "fragments-with-sidx", "fragments-with-absolute-offsets"]
)
async def test_film_that_needs_none_or_cannot_have_one_stays_as_it_is(reel: Path, tmp_path: Path, layout: str) -> None:
    film = make_film(reel, tmp_path / "film.mp4", layout, loops=2)
    assert await insertion_for(film.read_bytes()) is None


async def test_film_that_was_cut_off_stays_as_it_is(reel: Path, tmp_path: Path) -> None:
    film = make_film(reel, tmp_path / "film.mp4", "fragments-without-index", loops=2)
    content = film.read_bytes()
    assert await insertion_for(content[: len(content) // 2]) is None


def box(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(body), kind) + body


def nested(depth: int) -> bytes:
    body = b""
    for _ in range(depth):
        body = box(b"moov", body)
    return body


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"x" * 15,
        os.urandom(50_000),
        box(b"ftyp", bytes(20)) + nested(20_000) + bytes(100),
        box(b"ftyp", bytes(20)) + box(b"moov", box(b"trak", box(b"tkhd", b"\0")) + box(b"mvex", b"")) + bytes(100),
        box(b"ftyp", bytes(20)) * 1000,
        box(b"ftyp", bytes(20)) + struct.pack(">I4sQ", 1, b"free", 1 << 62) + bytes(100),
    ],
)
async def test_nonsense_is_left_to_the_children(content: bytes) -> None:
    assert await insertion_for(content) is None


async def test_damaged_heads_never_raise(reel: Path, tmp_path: Path) -> None:
    content = bytearray(make_film(reel, tmp_path / "film.mp4", "fragments-with-mfra", loops=1).read_bytes())
    for position in (*range(2400), *range(len(content) - 400, len(content))):
        good = content[position]
        for value in (0, 0xFF):
            content[position] = value
            await insertion_for(content)
        content[position] = good
