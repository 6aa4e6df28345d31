"""What a site expects to hear from its players is told to that site, and to nobody else."""

import socket
from pathlib import Path

from aiohttp.abc import AbstractResolver, ResolveResult

from tests.acceptance.worker.attacks.origin import hostile_origin
from worker.sources.address import AddressPolicy
from worker.sources.gateway import Gateway
from worker.sources.http import HttpSource, Spool
from worker.sources.http_client import Guise


class EveryName(AbstractResolver):
    """All names lead to one address."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host="127.0.0.2", port=port, family=family, proto=0, flags=0)]

    async def close(self) -> None:
        pass


async def test_cookies_stay_with_their_site_and_headers_go_along(gateway: Gateway, tmp_path: Path) -> None:
    source = HttpSource(
        gateway,
        policy=AddressPolicy(allow_private=True),
        spool=Spool(tmp_path, 1 << 20),
        resolver=EveryName(),
    )
    async with hostile_origin("127.0.0.2") as origin:
        origin.redirects["film"] = f"http://media.other.test:{origin.port}/moved"
        origin.files["moved"] = bytes(1000)
        guise = Guise(
            headers={"Referer": "http://page/", "User-Agent": "mozilla"},
            cookies="session=s3cret; Domain=site.test; Path=/; foreign=1; Domain=bank.test",
            cookie_url=f"http://site.test:{origin.port}/film",
        )
        async with source.open(f"http://www.site.test:{origin.port}/film", guise):
            pass
        first, second, *_ = origin.headers
    assert first["cookie"] == "session=s3cret"
    assert "cookie" not in second
    assert {first["referer"], second["referer"]} == {"http://page/"}
    assert {first["user-agent"], second["user-agent"]} == {"mozilla"}
