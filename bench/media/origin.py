"""The origin: a range server in a process of its own, so that its work is nobody's cost, which counts what it sends.

`python -m bench.media.origin DIRECTORY MBIT` prints its port and serves until its input ends.
"""

import asyncio
import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.request import urlopen

#: asks for what was sent since the last time
TALLY = "/-/tally"
#: small, so that what the reader never takes is hardly counted
SEND_BUFFER_BYTES = 65_536
CHUNK_BYTES = 65_536
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


@dataclass(frozen=True, slots=True)
class Tally:
    sent_bytes: int
    requests: int


@dataclass(frozen=True, slots=True)
class Origin:
    base_url: str

    def url(self, path: Path) -> str:
        return f"{self.base_url}/{path.name}"

    async def tally(self) -> Tally:
        """What was sent since the last time this was asked."""
        return await asyncio.to_thread(self._ask)

    def _ask(self) -> Tally:
        with urlopen(self.base_url + TALLY, timeout=10) as answer:  # noqa: S310 - our own server on loopback
            return Tally(**json.load(answer))


@asynccontextmanager
async def open_origin(directory: Path, *, mbit_per_connection: float = 0) -> AsyncIterator[Origin]:
    """Serve the files of `directory`, each connection no faster than told; 0 is as fast as it goes."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.media.origin",
        str(directory),
        str(mbit_per_connection),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert child.stdin is not None, "it was asked for"
    assert child.stdout is not None, "it was asked for"
    try:
        port = int(await asyncio.wait_for(child.stdout.readline(), 20))
        yield Origin(f"http://127.0.0.1:{port}")
    finally:
        child.stdin.close()
        child.kill()
        await child.wait()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        return connection, address

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader that has enough hangs up; that is no news."""


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    directory: ClassVar[Path]
    bytes_per_second: ClassVar[float]
    lock: ClassVar[threading.Lock] = threading.Lock()
    sent_bytes: ClassVar[int] = 0
    requests: ClassVar[int] = 0

    def do_GET(self) -> None:
        if self.path == TALLY:
            self._tell()
            return
        path = self.directory / self.path.lstrip("/")
        if not path.is_file() or path.parent != self.directory:
            self._head(404, {"Content-Length": "0"})
            return
        size = path.stat().st_size
        wanted = _RANGE.fullmatch(self.headers.get("Range", ""))
        first = int(wanted[1]) if wanted else 0
        last = min(int(wanted[2]), size - 1) if wanted and wanted[2] else size - 1
        if first > last:
            self._head(416, {"Content-Range": f"bytes */{size}", "Content-Length": "0"})
            return
        ranged = {"Content-Range": f"bytes {first}-{last}/{size}"} if wanted else {}
        fixed = {"Accept-Ranges": "bytes", "ETag": f'"{size}"', "Content-Type": "video/mp4"}
        self._head(206 if wanted else 200, {**fixed, **ranged, "Content-Length": str(last - first + 1)})
        self._count(0, requests=1)
        self._send(path, first, last + 1)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """The tally is all that is told."""

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, path: Path, start: int, end: int) -> None:
        began, position = time.monotonic(), start
        with path.open("rb") as file:
            while position < end:
                size = min(CHUNK_BYTES, end - position)
                sent = os.sendfile(self.connection.fileno(), file.fileno(), position, size)
                self._count(sent)
                position += sent
                if self.bytes_per_second:
                    due = began + (position - start) / self.bytes_per_second
                    time.sleep(max(0.0, due - time.monotonic()))

    def _tell(self) -> None:
        with self.lock:
            body = json.dumps({"sent_bytes": _Answer.sent_bytes, "requests": _Answer.requests}).encode()
            _Answer.sent_bytes = _Answer.requests = 0
        self._head(200, {"Content-Length": str(len(body))})
        self.wfile.write(body)

    def _count(self, sent: int, *, requests: int = 0) -> None:
        with self.lock:
            _Answer.sent_bytes += sent
            _Answer.requests += requests


def main(directory: str, mbit: str) -> None:
    _Answer.directory = Path(directory)
    _Answer.bytes_per_second = float(mbit) * 1e6 / 8
    server = _Server(("127.0.0.1", 0), _Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
