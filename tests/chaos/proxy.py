"""A TCP proxy between a worker and its database that can lose, delay, cut and refuse."""

import asyncio
import socket
import struct
from enum import StrEnum
from typing import Self


class Mode(StrEnum):
    PASS = "pass"
    #: every chunk waits
    LATENCY = "latency"
    #: connections are accepted, and nothing that is sent arrives, in either direction
    BLACKHOLE = "blackhole"
    #: new connections are reset at once; living ones go on
    REFUSE = "refuse"


class FaultProxy:
    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._passing = asyncio.Event()
        self._passing.set()
        self._mode = Mode.PASS
        self.latency_seconds = 0.0
        #: bytes until every living connection is cut; None = never
        self._cut_in_bytes: int | None = None
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_exc: object) -> None:
        assert self._server is not None
        self._server.close()
        self.reset()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def mode(self) -> Mode:
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._mode = mode
        if mode is Mode.BLACKHOLE:
            self._passing.clear()
        else:
            self._passing.set()

    def reset(self) -> None:
        """RST to both ends of every living connection."""
        for writer in list(self._connections):
            _abort(writer)

    def cut_after(self, count_bytes: int) -> None:
        """Reset everything when so many more bytes have passed: in the middle of a message, as likely as not."""
        self._cut_in_bytes = count_bytes

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._mode is Mode.REFUSE:
            _abort(writer)
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._connections.add(writer)
        try:
            await self._passing.wait()
            await self._join(reader, writer)
        except OSError:
            return  # the other side is down: so is this one now
        finally:
            self._connections.discard(writer)
            _abort(writer)
            self._tasks.discard(task)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        self._connections.add(far_writer)
        pumps = [
            asyncio.create_task(self._pump(reader, far_writer)),
            asyncio.create_task(self._pump(far_reader, writer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._connections.discard(far_writer)
            # An orderly end of one side is an orderly end of the other.
            far_writer.close()
            writer.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65536):
            await self._passing.wait()
            if self._mode is Mode.LATENCY:
                await asyncio.sleep(self.latency_seconds)
            if self._cut_in_bytes is not None:
                self._cut_in_bytes -= len(chunk)
                if self._cut_in_bytes < 0:
                    writer.write(chunk[: self._cut_in_bytes])
                    self._cut_in_bytes = None
                    self.reset()
                    return
            writer.write(chunk)
            await writer.drain()


def _abort(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    if connection is not None and connection.fileno() >= 0:
        # no FIN, no waiting: the peer gets RST
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
