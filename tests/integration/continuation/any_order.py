"""Workers of one long job that do anything at any time; each act picks what it acts on by a number."""

from collections import Counter
from uuid import UUID

import pytest

from tests.integration.continuation.long_jobs import ME, page_id, place
from tests.integration.continuation.races import CLEAR, Ring
from worker.domain.job import Attempt
from worker.domain.paging import PAGE_QUEUE, Chain
from worker.errors import LeaseLost

#: a job that takes its worker down more often is given up, which is another story
MOST_CRASHES = 2
LOSE = """
WITH lost AS (
    DELETE FROM pgboss.job WHERE id IN (
        SELECT id FROM worker.jobs WHERE run_id = $1 AND status = 'queued' ORDER BY id OFFSET $2 LIMIT 1)
    RETURNING id
), gone AS (
    DELETE FROM worker.jobs AS ours USING lost WHERE ours.id = lost.id RETURNING ours.id
)
SELECT count(*) FROM gone
"""


class Crew:
    def __init__(self, ring: Ring, seen: Counter[str], chains: list[Chain]) -> None:
        self.run, self.long, self.seen, self.chains = ring.ground.run, ring.long, seen, chains
        self.run(ring.ground.pool.execute(CLEAR))
        self.job_id = self.run(self.long.start(*chains))
        self.offsets = [chain.first for chain in chains]
        self.held: list[Attempt] = []
        self.zombies: list[Attempt] = []
        self.looking: Attempt | None = None
        self.crashes: Counter[UUID] = Counter()

    def take_a_page(self, _number: int) -> None:
        self.held += self.run(self.long.room.store.acquire(PAGE_QUEUE, 1, ME)).attempts

    def deliver(self, number: int) -> None:
        if self.held:
            reason = self.run(self.long.deliver(self.held.pop(number % len(self.held))))
            self.seen["page not its turn" if reason else "page done"] += 1

    def finish_whatever_others_did(self, number: int) -> None:
        """As one who looked whether it is the page's turn long ago."""
        if not self.held:
            return
        page = self.held.pop(number % len(self.held))
        partition, offset = place(page)
        turn, past = self.offsets[partition], self.chains[partition].past
        self.seen["page done by two"] += offset < turn < past
        self.seen["page done too early"] += turn < offset < past
        self.run(self.long.finish(page))

    def send_a_page_again(self, number: int) -> None:
        partition = number % len(self.chains)
        chain = self.chains[partition]
        offset = chain.first + number // len(self.chains) % (chain.past - chain.first)
        message = {"run": str(self.job_id), "partition": partition, "offset": offset}
        # Under the page's own id it is taken for the page that will be sent when its turn comes.
        own = page_id(self.job_id, partition, offset) if number % 3 == 0 else None
        self.run(self.long.room.queue.send(PAGE_QUEUE, message, priority=number % 2, id=own))

    def give_a_page_to_two(self, number: int) -> None:
        if self.held:
            spec = self.held[number % len(self.held)].spec
            self.run(self.long.room.queue.send(PAGE_QUEUE, spec, priority=9))
            self.take_a_page(number)

    def lose_a_page(self, number: int) -> None:
        self.seen["page lost"] += self.run(self.long.room.pool.fetchval(LOSE, self.job_id, number % 3))

    def kill_the_worker_of_a_page(self, number: int) -> None:
        frail = [page for page in self.held if self.crashes[page.job_id] < MOST_CRASHES]
        if frail:
            page = frail[number % len(frail)]
            self.held.remove(page)
            self.zombies.append(page)
            self._crash(page, "page requeued")

    def wake_a_zombie(self, number: int) -> None:
        if self.zombies:
            with pytest.raises(LeaseLost):
                self.run(self.long.finish(self.zombies[number % len(self.zombies)]))
            self.seen["zombie refused"] += 1

    def deliver_the_job(self, _number: int) -> None:
        if self.looking is None:
            self.run(self.long.hurry(self.job_id))
            attempts = self.run(self.long.room.store.acquire("clip", 1, ME)).attempts
            self.looking = attempts[0] if attempts else None

    def look(self, _number: int) -> None:
        if self.looking is None:
            return
        attempt, self.looking = self.looking, None
        saw = self.run(self.long.look(attempt))
        assert saw in {"snoozed", "done"}
        last = self.run(self.long.room.desk.events(self.job_id))[-1]
        self.seen[f"job {saw}"] += 1
        self.seen["page sent again"] += last.kind == "snoozed" and "lost" in (last.data or {})

    def kill_the_worker_of_the_job(self, _number: int) -> None:
        if self.looking is not None and self.crashes[self.job_id] < MOST_CRASHES:
            attempt, self.looking = self.looking, None
            self._crash(attempt, "job requeued")

    def check(self) -> None:
        """No chain goes back, no page counts twice, and both tables agree."""
        offsets = self.run(self.long.offsets(self.job_id))
        assert all(now >= before for now, before in zip(offsets, self.offsets, strict=True))
        self.offsets = offsets
        self.run(self.long.require_sound())

    def bring_to_an_end(self) -> None:
        """Whatever happened: in the end every page is there once, and they are put together once."""
        while self.held:
            self.deliver(0)
        self.look(0)
        assert self.run(self.long.bring_to_an_end(self.job_id)) == "done"
        self.check()
        wanted = [(at, offset) for at, chain in enumerate(self.chains) for offset in range(chain.first, chain.past)]
        assert self.run(self.long.page_rows(self.job_id)) == wanted
        kinds = [event.kind for event in self.run(self.long.room.desk.events(self.job_id))]
        assert (kinds.count("done"), kinds.count("page:finished")) == (1, len(wanted))
        assert self.run(self.long.room.desk.show(self.job_id)).result == {"pages": len(wanted)}

    def _crash(self, attempt: Attempt, what: str) -> None:
        self.crashes[attempt.job_id] += 1
        self.run(self.long.silence(attempt))
        assert self.run(self.long.room.leases.recover(silent_are_dead=True)).recovered == {"stale": 1}
        self.seen[what] += 1


ACTS = (
    Crew.take_a_page,
    Crew.take_a_page,
    Crew.deliver,
    Crew.finish_whatever_others_did,
    Crew.finish_whatever_others_did,
    Crew.send_a_page_again,
    Crew.give_a_page_to_two,
    Crew.lose_a_page,
    Crew.kill_the_worker_of_a_page,
    Crew.wake_a_zombie,
    Crew.deliver_the_job,
    Crew.look,
    Crew.kill_the_worker_of_the_job,
)
