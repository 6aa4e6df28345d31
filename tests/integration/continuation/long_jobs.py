"""A long job and its pages on real tables, with everything that media would take left out."""

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

from tests.conftest import Room
from tests.integration.leases.ground import ROWS, require_sound
from tests.integration.stages.attempts import Timeline
from tests.jobs import one_attempt
from worker.continuation.look import LookFirst
from worker.continuation.page import PageResolve
from worker.continuation.store import RunStore
from worker.domain.job import Attempt, JobId, Lease, LeaseToken, WorkerId
from worker.domain.media import AudioStream, Probe, VideoStream
from worker.domain.outcome import Done, PageDone, Snoozed, Split
from worker.domain.paging import PAGE_QUEUE, Chain, PageKind, PageRef, parse_page
from worker.domain.run import RunPlan
from worker.errors import ClipFailed, JobError
from worker.jobs.strays import Strays
from worker.sources.catalog import SourceCatalog
from worker.stages.base import Work
from worker.stages.resolve import Resolve

ME = WorkerId(uuid4())
SPEC = {"source": "file:///talk.mp4", "mode": "exact", "transcript": False}
PROBE = Probe("mp4", 60.0, 0.0, VideoStream("h264", 320, 180, 25.0), AudioStream("aac", 48000, 2))
PICTURES, SPEECH = PageKind.PICTURES, PageKind.SPEECH


def pictures(first: int, past: int) -> Chain:
    return Chain(PICTURES, first, past, (0,))


#: two chains of two pages
CHAINS = (pictures(0, 2), pictures(2, 4))


def split_into(*chains: Chain, fallback: str = "") -> Split:
    pages = max(chain.past for chain in chains)
    borders = tuple(10.0 * number for number in range(pages + 1))
    return Split(RunPlan(borders, PROBE, "talk.mp4", 1000, None, fallback), chains)


class NothingToResolve(Resolve):
    """Where a job that was not split, or must be split anew, would go on."""

    def __init__(self) -> None:
        self.calls = 0

    async def run(self, work: Work) -> None:
        self.calls += 1


@dataclass(frozen=True)
class LongJobs:
    room: Room
    runs: RunStore

    async def submit(self, options: dict[str, Any] | None = None) -> JobId:
        job_id = await self.room.desk.submit("clip", SPEC, options)
        assert job_id is not None
        return job_id

    async def start(self, *chains: Chain, options: dict[str, Any] | None = None) -> JobId:
        """A job that has been split and waits for its pages."""
        job_id = await self.submit(options)
        await self.runs.begin((await self.parent(job_id)).lease, split_into(*(chains or CHAINS)))
        return job_id

    async def parent(self, job_id: UUID) -> Attempt:
        """Acquire the job that was split, however long it meant to wait."""
        await self.hurry(job_id)
        attempt = await one_attempt(self.room, ME)
        assert attempt.job_id == job_id
        return attempt

    async def hurry(self, job_id: UUID) -> None:
        """As if the time that a job waits had passed."""
        await self.room.pool.execute("UPDATE pgboss.job SET start_after = now() WHERE id = $1", job_id)

    async def page(self) -> Attempt:
        return await one_attempt(self.room, ME, PAGE_QUEUE)

    async def page_at(self, partition: int, offset: int) -> Attempt:
        """Acquire all pages that are due; this one is among them."""
        acquired = await self.room.store.acquire(PAGE_QUEUE, 100, ME)
        (found,) = [each for each in acquired.attempts if place(each) == (partition, offset)]
        return found

    async def pages(self) -> list[Attempt]:
        return (await self.room.store.acquire(PAGE_QUEUE, 100, ME)).attempts

    async def finish(self, attempt: Attempt, facts: dict[str, Any] | None = None) -> None:
        """As a worker that believes it has done the page, whatever others did meanwhile."""
        await self.runs.finish_page(attempt.lease, PageDone(parse_page(attempt.spec), facts or {"pictures": []}))

    async def deliver(self, attempt: Attempt) -> str:
        """As a worker does: look whether it is the page's turn, and do it then; returns why it did not."""
        work = work_of(attempt)
        await PageResolve(cast("SourceCatalog", NoSources()), self.runs).run(work)
        if isinstance(work.ending, Done):
            await self.room.store.finish(attempt.lease, work.ending.result)
            return str(work.ending.result["skipped"])
        await self.finish(attempt)
        return ""

    async def finish_all(self) -> None:
        while pages := await self.pages():
            for attempt in pages:
                await self.deliver(attempt)

    async def look(self, attempt: Attempt) -> str:
        """What a delivery of a split job comes to: snoozed, failed, anew, or done."""
        resolve, work = NothingToResolve(), work_of(attempt)
        try:
            await LookFirst(resolve, self.runs).run(work)
        except JobError as exc:
            await self.room.store.give_up(attempt.lease, exc)
            return "failed"
        if isinstance(work.ending, Snoozed):
            await self.runs.snooze(attempt.lease, work.ending)
            return "snoozed"
        if work.run is None:
            assert resolve.calls == 1
            return "anew"
        await self.room.store.finish(attempt.lease, {"pages": len(await self.runs.pages(attempt.job_id))})
        return "done"

    async def look_again(self, job_id: UUID) -> str:
        return await self.look(await self.parent(job_id))

    async def offsets(self, run_id: UUID) -> list[int]:
        rows = await self.room.pool.fetch(
            "SELECT next_offset FROM worker.partition_progress WHERE run_id = $1 ORDER BY partition_id", run_id
        )
        return [row["next_offset"] for row in rows]

    async def page_rows(self, run_id: UUID) -> list[tuple[int, int]]:
        rows = await self.room.pool.fetch(
            "SELECT partition_id, page_offset FROM worker.pages WHERE run_id = $1 ORDER BY 1, 2", run_id
        )
        return [(row["partition_id"], row["page_offset"]) for row in rows]

    async def page_jobs(self, run_id: UUID) -> dict[tuple[int, int], str]:
        """The status of each page that was sent; of one that was sent twice, the newest."""
        rows = await self.room.pool.fetch(
            "SELECT spec, status FROM worker.jobs WHERE run_id = $1 ORDER BY created_at", run_id
        )
        return {(row["spec"]["partition"], row["spec"]["offset"]): row["status"] for row in rows}

    async def waits_seconds(self, job_id: UUID) -> float:
        """How long until the job is due; negative when it is."""
        found = await self.room.pool.fetchval(
            "SELECT extract(epoch FROM start_after - clock_timestamp()) FROM pgboss.job WHERE id = $1", job_id
        )
        return float(found)

    async def held_pages(self, run_id: UUID) -> list[Lease]:
        """Of pages at work, whoever holds them."""
        rows = await self.room.pool.fetch(
            "SELECT ours.id, lease_token, retry_count FROM worker.jobs AS ours JOIN pgboss.job AS theirs USING (id)"
            " WHERE run_id = $1 AND status = 'processing'",
            run_id,
        )
        return [Lease(JobId(row["id"]), PAGE_QUEUE, LeaseToken(row["lease_token"]), row["retry_count"]) for row in rows]

    async def finish_as(self, lease: Lease) -> None:
        spec = await self.room.pool.fetchval("SELECT spec FROM worker.jobs WHERE id = $1", lease.job_id)
        await self.runs.finish_page(lease, PageDone(parse_page(spec), {"pictures": []}))

    async def settle_strays(self) -> None:
        await Strays(self.room.pool, self.room.queue).settle()

    async def fail_for_good(self, attempt: Attempt, error: JobError | None = None) -> None:
        await self.room.store.give_up(attempt.lease, error or ClipFailed("no such codec"))

    async def silence(self, attempt: Attempt) -> None:
        """As if its worker had not been heard of for an hour."""
        await self.room.pool.execute(
            "UPDATE worker.jobs SET last_heartbeat_at = now() - interval '1 hour' WHERE id = $1", attempt.job_id
        )

    async def status(self, job_id: UUID) -> str:
        return str(await self.room.pool.fetchval("SELECT status FROM worker.jobs WHERE id = $1", job_id))

    async def bring_to_an_end(self, job_id: UUID) -> str:
        """What the workers' loops and enough time make of it; returns the status that it ends with."""
        for _ in range(12):
            await self.room.leases.recover(silent_are_dead=True)
            await self.settle_strays()
            await self.room.pool.execute("UPDATE pgboss.job SET start_after = now() WHERE name = $1", PAGE_QUEUE)
            await self.finish_all()
            if (status := await self.status(job_id)) != "queued":
                break
            await self.look_again(job_id)
        return status

    async def require_sound(self) -> None:
        """The two tables agree about every job, and nothing was counted twice."""
        for row in await self.room.pool.fetch(ROWS):
            # A page that ends in the same moment as its job does not wait to see which of both was first.
            require_sound({**row, "events": [kind for kind in row["events"] if kind != "page:finished"]})
        doubled = await self.room.pool.fetch(
            "SELECT run_id, partition_id, next_offset FROM worker.partition_progress AS chain"
            " WHERE next_offset - first_offset <> (SELECT count(*) FROM worker.pages AS page"
            " WHERE page.run_id = chain.run_id AND page.partition_id = chain.partition_id"
            " AND page.page_offset < chain.next_offset)"
        )
        assert doubled == [], "progress and finished pages differ"


class NoSources:
    """Pages that are obsolete open no source; those that are not need not, here."""

    def open(self, _source: str) -> Any:
        class Opened:
            size_bytes, etag = 1000, None

        class Opening(AsyncExitStack):
            async def __aenter__(self) -> Any:
                return Opened()

        return Opening()


def place(attempt: Attempt) -> tuple[int, int]:
    page = parse_page(attempt.spec)
    return page.partition, page.offset


def page_id(run_id: JobId, partition: int, offset: int) -> JobId:
    return PageRef(run_id, partition, offset).job_id


def work_of(attempt: Attempt) -> Work:
    return Work(attempt.job_id, attempt.spec, Path("/nowhere"), Timeline(), AsyncExitStack())
