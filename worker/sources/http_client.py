"""HTTP requests that only ever reach addresses the policy allows, redirects included, with our errors."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.resolver import ThreadedResolver
from yarl import URL

from worker.errors import (
    InvalidRequest,
    JobError,
    SourceForbidden,
    SourceNotFound,
    SourceUnsupported,
    UpstreamFailure,
)
from worker.sources.address import AddressPolicy
from worker.sources.base import public_label
from worker.sources.pace import paced
from worker.sources.resume import OriginBusyError
from worker.sources.slots import HostSlots

_CHUNK_BYTES = 256 * 1024
_MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TRANSIENT = frozenset({408, 425, 429})
_NAME_UNKNOWN = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


@dataclass(frozen=True, slots=True)
class HttpTimeouts:
    connect_seconds: float = 10.0
    #: for the head of an answer, and for silence after it; not the length of a download
    read_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Guise:
    """How a site expects to be asked, where it looks at more than the URL."""

    headers: Mapping[str, str] = field(default_factory=dict)
    #: with their domains, outside of which they are not sent
    cookies: str = ""
    #: the site that gave them
    cookie_url: str = ""
    #: a proxy of the worker's own, which judges addresses in place of this client
    proxy: str | None = None


class AddressRefusedError(PermissionError):
    """Raised at the socket; one text for all addresses, so that a name with several gives one error."""

    def __init__(self) -> None:
        super().__init__("address refused")


class HttpClient:
    """GET requests in one session, which resolves a name once: its address cannot change under us."""

    def __init__(self, session: aiohttp.ClientSession, timeouts: HttpTimeouts, slots: HostSlots) -> None:
        self._session = session
        self._slots = slots
        self._read_seconds = timeouts.read_seconds
        self._head_seconds = timeouts.connect_seconds + timeouts.read_seconds

    @asynccontextmanager
    async def get(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer after redirects, whatever its status."""
        label = public_label(url)
        target = _parse(url, label)
        try:
            for _ in range(_MAX_REDIRECTS + 1):
                async with self._slots.hold(target.host or ""), await self._ask(target, headers) as response:
                    if response.status not in _REDIRECTS:
                        yield response
                        return
                    target = _redirect_target(response, label)
        except (aiohttp.ClientError, TimeoutError, OSError) as exc:
            raise explain(exc, label) from exc
        raise SourceUnsupported(f"{label} redirects more than {_MAX_REDIRECTS} times")

    async def body(self, response: aiohttp.ClientResponse, label: str) -> AsyncGenerator[bytes, None]:
        """What the answer brings, as long as it brings something."""
        chunks = response.content.iter_chunked(_CHUNK_BYTES)
        try:
            async for chunk in paced(aiter(chunks), window_seconds=self._read_seconds):
                yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as exc:
            raise explain(exc, label) from exc

    async def _ask(self, target: URL, headers: Mapping[str, str]) -> aiohttp.ClientResponse:
        # aiohttp's own limit starts anew with every byte: a head sent bit by bit would never end
        async with asyncio.timeout(self._head_seconds):
            return await self._session.get(target, headers=headers, allow_redirects=False)


@asynccontextmanager
async def http_client(
    policy: AddressPolicy,
    *,
    timeouts: HttpTimeouts,
    tls: ssl.SSLContext,
    resolver: AbstractResolver | None = None,
    slots: HostSlots | None = None,
    guise: Guise | None = None,
) -> AsyncIterator[HttpClient]:
    guise = guise or Guise()
    proxy = urlsplit(guise.proxy or "")

    def is_proxy(address: tuple[object, ...]) -> bool:
        # with a proxy, it is the only one that this client connects to
        return guise.proxy is not None and address[:2] == (proxy.hostname, proxy.port)

    def guarded_socket(addr_info: aiohttp.AddrInfoType) -> socket.socket:
        # The last step before connecting, with the very address that will be used: literals, odd spellings of
        # numbers and every answer of the name server pass here, and nothing is resolved after it.
        family, kind, protocol, _, address = addr_info
        if not is_proxy(address) and not policy.allows(str(address[0])):
            raise AddressRefusedError
        return socket.socket(family, kind, protocol)

    connector = aiohttp.TCPConnector(
        resolver=resolver or ThreadedResolver(),
        ttl_dns_cache=None,
        socket_factory=guarded_socket,
        ssl=tls,
    )
    session = aiohttp.ClientSession(
        connector=connector,
        # bytes as they are stored: a transparently unpacked body would not fit its ranges
        auto_decompress=False,
        headers={"User-Agent": "clipboss", **guise.headers, "Accept-Encoding": "identity"},
        timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=timeouts.connect_seconds, sock_read=timeouts.read_seconds
        ),
        trust_env=False,
        proxy=guise.proxy,
    )
    async with session:
        if guise.cookies:
            session.cookie_jar.update_cookies(_cookies(guise.cookies), URL(guise.cookie_url))
        yield HttpClient(session, timeouts, slots or HostSlots())


def _cookies(text: str) -> SimpleCookie:
    try:
        return SimpleCookie(text)
    except CookieError:
        return SimpleCookie()


def status_error(status: int, label: str) -> JobError:
    """What an answer that brings no bytes means for the job."""
    if status in {404, 410}:
        return SourceNotFound(f"{label} does not exist (HTTP {status})")
    if status in {401, 403, 451}:
        return SourceForbidden(f"{label} may not be read (HTTP {status}): check the URL's signature or the rights")
    if status in _TRANSIENT or status >= 500:
        return UpstreamFailure(f"{label} is not available now (HTTP {status})")
    return SourceUnsupported(f"{label} answered with HTTP {status}, which is no media")


def plea_for_less(response: aiohttp.ClientResponse) -> OriginBusyError | None:
    """The cause to give to a `status_error`, when the origin has too much to do and not something against us."""
    if response.status not in {429, 503}:
        return None
    told = response.headers.get("Retry-After", "")
    # a date is the other form; whoever sends one gets our own delays
    return OriginBusyError(float(told) if told.isascii() and told.isdigit() else 0.0)


def explain(error: Exception, label: str) -> JobError:
    """Translate what aiohttp raises; the texts never repeat its messages, which may quote the whole URL."""
    match error:
        case aiohttp.InvalidURL():
            return InvalidRequest(f"{label} is not a valid URL")
        case aiohttp.ClientConnectorCertificateError():
            return SourceForbidden(f"{label}: the server's TLS certificate was not accepted")
        case aiohttp.ClientHttpProxyError(status=403):
            return _private(label)
        case aiohttp.ClientConnectorError():
            return _explain_no_connection(error.os_error, label)
        case TimeoutError():
            return UpstreamFailure(f"{label} did not answer in time")
        case _:
            return UpstreamFailure(f"{label}: the connection broke off ({type(error).__name__})")


def _private(label: str) -> SourceForbidden:
    return SourceForbidden(f"{label} points into a private network; if that is meant, set ALLOW_PRIVATE_SOURCES=true")


def _explain_no_connection(cause: OSError, label: str) -> JobError:
    match cause:
        case AddressRefusedError():
            return _private(label)
        case socket.gaierror(errno=code) if code in _NAME_UNKNOWN:
            return SourceNotFound(f"{label}: there is no host of that name")
        case socket.gaierror():
            return UpstreamFailure(f"{label}: its host name could not be looked up")
        case _:
            return UpstreamFailure(f"{label}: no connection ({cause.strerror or type(cause).__name__})")


def _parse(url: str, label: str) -> URL:
    try:
        target = _as_written(url)
    except ValueError as exc:
        raise InvalidRequest(f"{label} is not a valid URL") from exc
    if not target.host:
        raise InvalidRequest(f"{label} names no host")
    return target


def _as_written(url: str) -> URL:
    # yarl would tidy up the quoting (%2F becomes /), which breaks signatures over the query
    target = URL(url, encoded=url.isascii() and " " not in url)
    # left alone, it also looks at host and port only when they are needed
    _ = target.host
    return target


def _redirect_target(response: aiohttp.ClientResponse, label: str) -> URL:
    location = response.headers.get("Location")
    if not location:
        raise SourceUnsupported(f"{label} redirects to nowhere (HTTP {response.status} without Location)")
    try:
        target = response.url.join(_as_written(location))
    except ValueError as exc:
        raise SourceUnsupported(f"{label} redirects to something that is no URL") from exc
    if target.scheme not in {"http", "https"} or not target.host:
        raise SourceForbidden(f"{label} redirects to something that is not http or https")
    return target
