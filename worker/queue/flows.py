"""Jobs that wait for other jobs: sent together, released one by one as their parents complete."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any
from uuid import UUID, uuid4

from worker.db.pool import Connection
from worker.errors import ConfigError
from worker.queue.conflicts import transaction
from worker.queue.options import NewJob, SendOptions
from worker.queue.sending import Sending

#: completed parents that one statement resolves
RESOLVE_BATCH = 1000


@dataclass(frozen=True, slots=True)
class FlowJob:
    """A job of a flow. `ref` names it within the flow; it waits until all of `depends_on` have completed."""

    ref: str
    queue: str
    data: Any = None
    depends_on: Sequence[str] = ()
    options: SendOptions = field(default_factory=SendOptions)


class _Refused(Exception):
    """Takes the transaction back."""


class Flows(Sending):
    async def flow(self, jobs: Sequence[FlowJob], *, connection: Connection | None = None) -> dict[str, UUID] | None:
        """The ids by ref, or None when a policy or throttle refused one of the jobs: then none was sent.

        A job whose parent fails or is cancelled stays blocked, until that parent is retried and completes, or its
        own retention ends.
        """
        _check(jobs)
        ids = {job.ref: UUID(str(job.options.get("id") or uuid4())) for job in jobs}
        try:
            async with transaction(self._pool, connection) as db:
                for queue in sorted({job.queue for job in jobs}):
                    await self._send_all(db, queue, [job for job in jobs if job.queue == queue], ids)
                await self._link(db, jobs, ids)
        except _Refused:
            return None
        return ids

    async def resolve_flows(self) -> int:
        """Release jobs whose parents have completed; how many. One pass in five seconds, whoever runs it."""
        if await self._pool.fetchval(self._sql["claim_flows"]) is None:
            return 0
        unblocked, resolved = 0, RESOLVE_BATCH
        while resolved == RESOLVE_BATCH:
            ((resolved, released),) = await self._pool.fetch(self._sql["resolve_flows"], RESOLVE_BATCH)
            unblocked += released
        return unblocked

    async def _send_all(self, db: Connection, queue: str, jobs: Sequence[FlowJob], ids: Mapping[str, UUID]) -> None:
        wanted = [NewJob(**{**job.options, "id": ids[job.ref], "data": job.data}) for job in jobs]
        if len(await self.insert(queue, wanted, connection=db)) < len(wanted):
            raise _Refused

    async def _link(self, db: Connection, jobs: Sequence[FlowJob], ids: Mapping[str, UUID]) -> None:
        queues = {job.ref: job.queue for job in jobs}
        links = [(job.ref, parent) for job in jobs for parent in sorted(set(job.depends_on))]
        await db.execute(
            self._sql["link_flow"],
            [queues[child] for child, _ in links],
            [ids[child] for child, _ in links],
            [queues[parent] for _, parent in links],
            [ids[parent] for _, parent in links],
        )


def _check(jobs: Sequence[FlowJob]) -> None:
    if not jobs:
        raise ConfigError("a flow needs at least one job")
    refs = {job.ref for job in jobs}
    if len(refs) < len(jobs):
        raise ConfigError("each job of a flow needs a ref of its own")
    for job in jobs:
        if unknown := set(job.depends_on) - refs:
            raise ConfigError(f"{job.ref!r} depends on {sorted(unknown)}, which the flow does not have")
    try:
        TopologicalSorter({job.ref: job.depends_on for job in jobs}).prepare()
    except CycleError as exc:
        raise ConfigError(f"the flow goes in a circle: {' -> '.join(exc.args[1])}") from exc
