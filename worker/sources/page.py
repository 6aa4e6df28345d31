"""Small texts from the web, such as playlists, whole and with the address they came from in the end."""

from contextlib import aclosing
from typing import Final

from worker.errors import SourceUnsupported
from worker.sources.base import public_label
from worker.sources.http import HttpOrigin, require_identity
from worker.sources.http_client import status_error

#: a playlist of a day in pieces of two seconds has 3 MB
MAX_BYTES: Final = 4 * 2**20


async def fetch_bytes(origin: HttpOrigin, url: str) -> tuple[bytes, str]:
    """The content and its address after redirects, which is what relative URLs in it count from."""
    label = public_label(url)
    async with origin.client.get(url, {}) as response:
        if response.status != 200:
            raise status_error(response.status, label)
        require_identity(response, label)
        content = bytearray()
        async with aclosing(origin.client.body(response, label)) as chunks:
            async for chunk in chunks:
                content += chunk
                if len(content) > MAX_BYTES:
                    raise SourceUnsupported(f"{label} is a playlist of more than {MAX_BYTES >> 20} MB")
        return bytes(content), str(response.url)


async def fetch_text(origin: HttpOrigin, url: str) -> tuple[str, str]:
    content, address = await fetch_bytes(origin, url)
    try:
        return content.decode(), address
    except UnicodeDecodeError as exc:
        raise SourceUnsupported(f"{public_label(url)} is a playlist that is not UTF-8") from exc
