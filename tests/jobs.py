"""What tests ask about jobs again and again."""

from uuid import UUID

from tests.conftest import Room
from worker.domain.job import Attempt, WorkerId


async def one_attempt(room: Room, worker: WorkerId, queue: str = "clip") -> Attempt:
    """Acquire exactly one job."""
    acquired = await room.store.acquire(queue, 1, worker)
    (attempt,) = acquired.attempts
    return attempt


async def both_tables(room: Room, job_id: UUID) -> tuple[str | None, str | None]:
    """The job's status with us, and its state with pg-boss."""
    ours = await room.pool.fetchval("SELECT status FROM worker.jobs WHERE id = $1", job_id)
    theirs = await room.pool.fetchval("SELECT state::text FROM pgboss.job WHERE id = $1", job_id)
    return ours, theirs


async def event_kinds(room: Room, job_id: UUID) -> list[str]:
    return [event.kind for event in await room.desk.events(job_id)]
