"""HTTP requests that only ever reach addresses the policy allows, redirects included, with our errors."""

import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

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

_MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TRANSIENT = frozenset({408, 425, 429})
_NAME_UNKNOWN = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


@dataclass(frozen=True, slots=True)
class HttpTimeouts:
    connect_seconds: float = 10.0
    #: silence on an open connection, not the length of a download
    read_seconds: float = 30.0


class AddressRefusedError(PermissionError):
    """Raised at the socket; one text for all addresses, so that a name with several gives one error."""

    def __init__(self) -> None:
        super().__init__("address refused")


class HttpClient:
    """GET requests in one session, which resolves a name once: its address cannot change under us."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    @asynccontextmanager
    async def get(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer after redirects, whatever its status."""
        label = public_label(url)
        target = _parse(url, label)
        try:
            for _ in range(_MAX_REDIRECTS + 1):
                async with self._session.get(target, headers=headers, allow_redirects=False) as response:
                    if response.status not in _REDIRECTS:
                        yield response
                        return
                    target = _redirect_target(response, label)
        except (aiohttp.ClientError, TimeoutError, OSError) as exc:
            raise explain(exc, label) from exc
        raise SourceUnsupported(f"{label} redirects more than {_MAX_REDIRECTS} times")


@asynccontextmanager
async def http_client(
    policy: AddressPolicy,
    *,
    timeouts: HttpTimeouts,
    tls: ssl.SSLContext,
    resolver: AbstractResolver | None = None,
) -> AsyncIterator[HttpClient]:
    def guarded_socket(addr_info: aiohttp.AddrInfoType) -> socket.socket:
        # The last step before connecting, with the very address that will be used: literals, odd spellings of
        # numbers and every answer of the name server pass here, and nothing is resolved after it.
        family, kind, protocol, _, address = addr_info
        if not policy.allows(str(address[0])):
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
        headers={"Accept-Encoding": "identity", "User-Agent": "clipboss"},
        timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=timeouts.connect_seconds, sock_read=timeouts.read_seconds
        ),
        trust_env=False,
    )
    async with session:
        yield HttpClient(session)


def status_error(status: int, label: str) -> JobError:
    """What an answer that brings no bytes means for the job."""
    if status in {404, 410}:
        return SourceNotFound(f"{label} does not exist (HTTP {status})")
    if status in {401, 403, 451}:
        return SourceForbidden(f"{label} may not be read (HTTP {status}): check the URL's signature or the rights")
    if status in _TRANSIENT or status >= 500:
        return UpstreamFailure(f"{label} is not available now (HTTP {status})")
    return SourceUnsupported(f"{label} answered with HTTP {status}, which is no media")


def explain(error: Exception, label: str) -> JobError:
    """Translate what aiohttp raises; the texts never repeat its messages, which may quote the whole URL."""
    match error:
        case aiohttp.InvalidURL():
            return InvalidRequest(f"{label} is not a valid URL")
        case aiohttp.ClientConnectorCertificateError():
            return SourceForbidden(f"{label}: the server's TLS certificate was not accepted")
        case aiohttp.ClientConnectorError():
            return _explain_no_connection(error.os_error, label)
        case TimeoutError():
            return UpstreamFailure(f"{label} did not answer in time")
        case _:
            return UpstreamFailure(f"{label}: the connection broke off ({type(error).__name__})")


def _explain_no_connection(cause: OSError, label: str) -> JobError:
    match cause:
        case AddressRefusedError():
            return SourceForbidden(
                f"{label} points into a private network; if that is meant, set ALLOW_PRIVATE_SOURCES=true"
            )
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
