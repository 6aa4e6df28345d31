"""An HTTP proxy in front of the S3 server that fails some requests; the client's Host header is part of its
signature, so it passes through unchanged."""

import asyncio
import random
from collections import Counter
from contextlib import suppress
from enum import StrEnum
from typing import Self

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

#: belong to one connection, not to the message
HOP_HEADERS = frozenset({"connection", "keep-alive", "transfer-encoding", "expect", "te", "upgrade"})
TIMEOUT_SECONDS = 2.0


class S3Fault(StrEnum):
    SERVER_ERROR = "5xx"
    TIMEOUT = "timeout"
    #: the connection breaks before the server has heard of the request
    CUT_REQUEST = "cut request"
    #: the server has done it, and nobody hears of it
    CUT_ANSWER = "cut answer"
    WRONG_CHECKSUM = "wrong checksum"


class S3FaultProxy:
    def __init__(self, target_url: str, *, seed: str) -> None:
        self._target = target_url.rstrip("/")
        self._random = random.Random(seed)
        #: that a given request fails; the bucket itself is never in doubt
        self.probability = 0.0
        self.injected: Counter[S3Fault] = Counter()
        self.url = ""

    async def __aenter__(self) -> Self:
        self._client = aiohttp.ClientSession(auto_decompress=False, connector=aiohttp.TCPConnector(limit=0))
        app = web.Application(client_max_size=2**30)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, auto_decompress=False)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._runner.cleanup()
        await self._client.close()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        fault = self._choose()
        if fault is S3Fault.CUT_REQUEST:
            return _hang_up(request)
        body = await request.read()
        if fault is S3Fault.SERVER_ERROR:
            return web.Response(status=self._random.choice([500, 502, 503]))
        if fault is S3Fault.TIMEOUT:
            await asyncio.sleep(TIMEOUT_SECONDS)
            return _hang_up(request)
        status, headers, content = await self._forward(request, body)
        if fault is S3Fault.CUT_ANSWER:
            return _hang_up(request)
        if fault is S3Fault.WRONG_CHECKSUM:
            for name in ("ETag", "x-amz-checksum-sha256"):
                if name in headers:
                    headers[name] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
        if request.method == "HEAD":
            response = web.StreamResponse(status=status, headers=headers)
            with suppress(ConnectionError):  # the worker that asked was killed
                await response.prepare(request)
            return response
        headers.pop("Content-Length", None)
        return web.Response(status=status, headers=headers, body=content)

    def _choose(self) -> S3Fault | None:
        if self._random.random() >= self.probability:
            return None
        fault = self._random.choice(list(S3Fault))
        self.injected[fault] += 1
        return fault

    async def _forward(self, request: web.Request, body: bytes) -> tuple[int, CIMultiDict[str], bytes]:
        url = URL(f"{self._target}{request.raw_path}", encoded=True)
        passed = CIMultiDict((n, v) for n, v in request.headers.items() if n.lower() not in HOP_HEADERS)
        async with self._client.request(
            request.method, url, headers=passed, data=body, allow_redirects=False, skip_auto_headers=["Content-Type"]
        ) as answer:
            content = await answer.read()
            headers = CIMultiDict((n, v) for n, v in answer.headers.items() if n.lower() not in HOP_HEADERS)
            return answer.status, headers, content


def _hang_up(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)
