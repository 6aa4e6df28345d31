"""Events that several queues subscribe to: publishing one sends a job to each."""

from typing import Any, Unpack
from uuid import UUID

from worker.db.pool import Connection
from worker.errors import ConfigError, QueueMissing
from worker.queue.options import SendOptions
from worker.queue.sending import Sending


class PubSub(Sending):
    async def subscribe(self, event: str, queue: str, *, connection: Connection | None = None) -> None:
        """From now on, `queue` gets a job whenever `event` is published. Subscribing twice changes nothing."""
        if not event:
            raise ConfigError("an event needs a name")
        if await self._on(connection).fetchval(self._sql["subscribe"], event, queue) is None:
            raise QueueMissing(f"queue {queue!r} does not exist in schema {self.schema!r}; create it first")

    async def unsubscribe(self, event: str, queue: str, *, connection: Connection | None = None) -> bool:
        """Whether there was a subscription to end."""
        return await self._on(connection).fetchval(self._sql["unsubscribe"], event, queue) is not None

    async def publish(
        self,
        event: str,
        data: Any = None,
        *,
        connection: Connection | None = None,
        **options: Unpack[SendOptions],
    ) -> dict[str, UUID | None]:
        """What `send` answered, by queue: no queue when nobody has subscribed.

        As in pg-boss, each send stands alone: pass a connection in a transaction to publish to all or to none.
        """
        sent: dict[str, UUID | None] = {}
        for row in await self._on(connection).fetch(self._sql["subscribers"], event):
            try:
                sent[row["name"]] = await self.send(row["name"], data, connection=connection, **options)
            except QueueMissing:
                # Deleted since we looked, and its subscription with it.
                continue
        return sent
