"""Real servers for tests: an S3 server, and an HTTP origin that can misbehave."""

import asyncio
import mmap
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from aiohttp import web
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client


@dataclass(frozen=True)
class S3Server:
    endpoint_url: str
    access_key: str
    secret_key: str
    bucket: str

    @cached_property
    def _client(self) -> "S3Client":
        return boto3.session.Session().client(
            "s3",
            endpoint_url=self.endpoint_url,
            region_name="us-east-1",
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            config=Config(
                signature_version="s3v4",
                s3={"addressing_style": "path"},
                connect_timeout=2,
                retries={"total_max_attempts": 1},
            ),
        )

    def client(self) -> "S3Client":
        """A plain boto3 client, for looking behind the back of what is tested."""
        return self._client


@contextmanager
def seaweedfs(directory: Path, *, bucket: str = "media") -> Iterator[S3Server]:
    """A SeaweedFS of its own below `directory`, whose data is thrown away with it."""
    port = _free_ports(4)
    server = S3Server(f"http://127.0.0.1:{port}", "test-access", "test-secret-0123456789", bucket)
    log_path = directory / "weed.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            _seaweedfs_argv(directory, port, bucket),
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(directory),
                "TMPDIR": str(directory),
                "AWS_ACCESS_KEY_ID": server.access_key,
                "AWS_SECRET_ACCESS_KEY": server.secret_key,
            },
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_until_ready(server, process, log_path)
        yield server
    finally:
        # an orderly stop takes seconds, and nobody needs the data
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _seaweedfs_argv(directory: Path, port: int, bucket: str) -> list[str]:
    return [
        str(Path(sys.executable).with_name("weed")),
        "mini",
        f"-dir={directory}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        f"-s3.port={port}",
        f"-master.port={port + 1}",
        f"-volume.port={port + 2}",
        f"-filer.port={port + 3}",
        f"-s3.localSocket={directory}/s3.sock",
        "-webdav=false",
        "-admin.ui=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-master.telemetry=false",
        f"-bucket={bucket}",
    ]


def _wait_until_ready(server: S3Server, process: subprocess.Popen[bytes], log_path: Path) -> None:
    client = server.client()
    deadline = time.monotonic() + 30
    while True:
        try:
            client.head_bucket(Bucket=server.bucket)
        except (BotoCoreError, ClientError) as exc:
            if process.poll() is not None or time.monotonic() > deadline:
                tail = log_path.read_text(errors="replace")[-2000:]
                raise AssertionError(f"SeaweedFS did not come up: {tail}") from exc
            time.sleep(0.05)
        else:
            return


def _free_ports(count: int) -> int:
    """The first of `count` free ports in a row, whose gRPC twins 10000 above are free too."""
    for _ in range(200):
        first = random.SystemRandom().randrange(15000, 45000)
        try:
            for port in (first + i + twin for i in range(count) for twin in (0, 10000)):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise AssertionError("no free ports")


@dataclass
class RangeServer:
    """Serves the files of `root` at `url(name)`; the knobs may be turned while it runs."""

    root: Path
    #: False = always the whole file, with 200
    ranges: bool = True
    #: cut the connection after so many bytes of a body …
    cut_after: int | None = None
    #: … this many times, then behave; None = always
    cuts_left: int | None = None
    #: answer with this status instead
    status: int | None = None
    #: redirect everything to this URL
    redirect: str | None = None
    #: wait so long before answering
    delay_seconds: float = 0.0
    #: send bodies no faster than this
    bytes_per_second: int | None = None
    #: answer with 429 to whoever would be one more than so many at once, …
    busy_above: int | None = None
    #: … and say when to come back
    retry_after: str | None = None
    #: how often that was answered
    refusals: int = 0
    #: requests under way, and the most there were at once
    in_flight: int = 0
    most_in_flight: int = 0
    #: None = no tag; change it to let the source "change"
    etag: str | None = '"v1"'
    #: the path and Range header of every request, in order
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    #: the If-Range header of every request, in order
    conditions: list[str | None] = field(default_factory=list)
    #: bytes of bodies written so far
    bytes_sent: int = 0
    host: str = "127.0.0.1"
    port: int = 0

    def url(self, name: str) -> str:
        return f"http://{self.host}:{self.port}/{name}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._answer(request)
        finally:
            self.in_flight -= 1

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.path_qs, request.headers.get("Range")))
        self.conditions.append(request.headers.get("If-Range"))
        await asyncio.sleep(self.delay_seconds)
        if self.redirect is not None:
            return web.Response(status=302, headers={"Location": self.redirect})
        if self.busy_above is not None and self.in_flight > self.busy_above:
            self.refusals += 1
            return web.Response(status=429, headers={"Retry-After": self.retry_after} if self.retry_after else {})
        if self.status is not None:
            return web.Response(status=self.status)
        path = self.root / request.match_info["name"]
        if not path.is_file():
            return web.Response(status=404)
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            if path.stat().st_size
            else nullcontext(b"") as content,
        ):
            return await self._send(request, content)

    async def _send(self, request: web.Request, content: bytes | mmap.mmap) -> web.StreamResponse:
        headers = {"ETag": self.etag} if self.etag else {}
        condition = request.headers.get("If-Range")
        status, start, end = 200, 0, len(content)
        if self.ranges and "Range" in request.headers and condition in {None, self.etag}:
            wanted = request.http_range
            start, end, _ = slice(wanted.start, wanted.stop).indices(len(content))
            if start >= end:
                return web.Response(status=416, headers={"Content-Range": f"bytes */{len(content)}"})
            status = 206
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
        response = web.StreamResponse(status=status, headers=headers)
        response.content_length = end - start
        await response.prepare(request)
        if request.method != "HEAD":
            await self._write(request, response, content[start:end])
        return response

    async def _write(self, request: web.Request, response: web.StreamResponse, body: bytes) -> None:
        cut = self.cut_after is not None and self.cut_after < len(body) and self.cuts_left != 0
        body = body[: self.cut_after] if cut else body
        for start in range(0, len(body), 65536):
            if self.bytes_per_second:
                await asyncio.sleep(65536 / self.bytes_per_second)
            await response.write(body[start : start + 65536])
            self.bytes_sent += len(body[start : start + 65536])
        if cut:
            if self.cuts_left is not None:
                self.cuts_left -= 1
            assert request.transport is not None
            # close, not abort: what was written shall arrive before the end
            request.transport.close()


@asynccontextmanager
async def range_server(root: Path, **knobs: object) -> AsyncIterator[RangeServer]:
    """An HTTP origin on loopback; `knobs` are fields of RangeServer."""
    server = RangeServer(root, **knobs)  # type: ignore[arg-type]
    app = web.Application()
    app.router.add_get("/{name:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, server.host, 0).start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        await runner.cleanup()
