"""How many connections a worker has open to one host, whatever the number of its jobs: origins count them too."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

#: two reads at their widest
CONNECTIONS_PER_HOST = 16


class HostSlots:
    """A place for each connection, given out in the order of asking.

    Whoever holds one must not wait for a reader, or jobs would wait for each other.
    """

    def __init__(self, per_host: int = CONNECTIONS_PER_HOST) -> None:
        self._per_host = per_host
        self._places: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, host: str) -> AsyncIterator[None]:
        places = self._places.get(host)
        if places is None:
            places = self._places[host] = asyncio.Semaphore(self._per_host)
        async with places:
            yield
