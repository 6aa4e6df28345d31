"""Runs the schedules: due occurrences are filed in pg-boss's forwarding queue and sent on from there.

The forwarding queue is what keeps an occurrence from firing twice when several processes, Node's among them, run
the schedules at once: its slots are unique. Sending to the target directly would break that.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from worker.db.pool import Connection
from worker.errors import ClipbossError, ConfigError, LeaseLost
from worker.queue.claiming import Claiming, Delivery
from worker.queue.options import from_json
from worker.queue.queues import Queues
from worker.queue.recurrence import kind_of, latest_occurrence, minute_slot, occurrence_key
from worker.queue.schedules import Schedule, Schedules
from worker.queue.sending import Sending
from worker.queue.settling import Settling

FORWARDING_QUEUE = "__pgboss__send-it"
FORWARD_BATCH = 50
#: an occurrence is due for this long: twice the pass's interval, so that one pass may fail
DUE_WINDOW = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class CronPass:
    """`filed` is 0 too when another process had filed the same. `skipped` says which schedules, and why."""

    filed: int = 0
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CronForwards:
    sent: tuple[UUID, ...] = ()
    #: by the target queue's policy or throttle
    refused: int = 0
    #: those whose target cannot be sent to; they are tried again like any job
    failed: int = 0


class Cron(Schedules, Queues, Sending, Claiming, Settling):
    async def run_cron_once(self) -> CronPass:
        """File what is due by the database's clock. To be called every 30 seconds or so, by any number of processes."""
        if await self.get_queue(FORWARDING_QUEUE) is None:
            await self.create_queue(FORWARDING_QUEUE)
        async with self._pool.acquire() as connection, connection.transaction():
            schedules = await self.get_schedules(connection=connection)
            turn = await self._take_turn(connection, schedules)
            if turn is None:
                return CronPass()
            now, last_pass = turn
            due, skipped = self._due(schedules, now, last_pass)
            filed = await connection.fetch(self._sql["file_occurrences"], FORWARDING_QUEUE, due)
            return CronPass(len(filed), skipped)

    async def work_cron_once(self) -> CronForwards:
        """Send on what has been filed, by us or by Node. To be called every few seconds."""
        sent: list[UUID] = []
        refused = failed = 0
        # In order of time: the schedule's `last_job_id` shall name the newest.
        for delivery in sorted(await self.fetch(FORWARDING_QUEUE, FORWARD_BATCH), key=_slot_text):
            try:
                job_id = await self._forward(delivery)
            except LeaseLost:
                continue
            except (ClipbossError, asyncpg.IntegrityConstraintViolationError) as exc:
                detail = {"name": type(exc).__name__, "message": str(exc)}
                await self.fail(FORWARDING_QUEUE, [delivery.fence], [detail])
                failed += 1
                continue
            refused += job_id is None
            sent += [job_id] if job_id else []
        return CronForwards(tuple(sent), refused, failed)

    async def _take_turn(
        self, connection: Connection, schedules: Sequence[Schedule]
    ) -> tuple[datetime, datetime | None] | None:
        """Now, and when the last pass was; None when somebody has just run one."""
        if any(kind_of(schedule.cron) == "rrule" for schedule in schedules):
            # Ours would take the turn from a Node process, which alone can evaluate rules. The slots keep a pass
            # without a turn from doing harm; making up for missed occurrences is left to whoever has it.
            return await connection.fetchval("SELECT now()"), None
        row = await connection.fetchrow(self._sql["claim_cron"])
        return (row["now"], row["last_pass"]) if row else None

    def _due(
        self, schedules: Iterable[Schedule], now: datetime, last_pass: datetime | None
    ) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
        due, skipped = [], []
        for schedule in schedules:
            try:
                occurrences = occurrences_of(schedule, now=now, last_pass=last_pass)
            except ConfigError as exc:
                # One that cannot be read must not stop the others.
                skipped.append(f"{schedule.name} (key {schedule.key!r}): {exc}")
                continue
            # Older releases of pg-boss take the minute in which they file, not the one that was due.
            moments = occurrences if self.version >= 42 else [now] * bool(occurrences)
            due += [self._filing(schedule, slot) for slot in sorted(set(map(minute_slot, moments)))]
        return due, tuple(skipped)

    def _filing(self, schedule: Schedule, slot: datetime) -> dict[str, Any]:
        text = slot.isoformat(sep=" ")
        return {
            "singletonKey": occurrence_key(schedule.name, schedule.key, version=self.version),
            "slot": text,
            "data": {
                "name": schedule.name,
                "key": schedule.key,
                "data": schedule.data,
                "options": schedule.options,
                "slot": text,
            },
        }

    async def _forward(self, delivery: Delivery) -> UUID | None:
        """Send and settle in one transaction: an occurrence is sent once, whatever crashes."""
        filed = delivery.data
        if not isinstance(filed, dict) or not isinstance(filed.get("name"), str):
            raise ConfigError("this is not a filed occurrence: an object with a name was expected")
        async with self._pool.acquire() as connection, connection.transaction():
            job_id = await self.send(
                filed["name"], filed.get("data"), connection=connection, **from_json(filed.get("options"))
            )
            # A filing without a key was made before schedules could tell their last job.
            if job_id is not None and filed.get("key") is not None and self.version >= 41:
                await connection.execute(self._sql["note_last_job"], filed["name"], filed["key"], job_id)
            if not await self.complete(FORWARDING_QUEUE, [delivery.fence], connection=connection):
                raise LeaseLost(f"occurrence {delivery.id} is no longer ours")
        return job_id


def occurrences_of(schedule: Schedule, *, now: datetime, last_pass: datetime | None) -> list[datetime]:
    """What is due now, after what was missed since the last pass if the schedule asks for it."""
    if kind_of(schedule.cron) == "rrule":
        raise ConfigError("recurrence rules are evaluated by Node only; run one with `schedule: true`, or use cron")
    window = now - DUE_WINDOW
    found = [latest_occurrence(schedule.cron, schedule.timezone, after=window, until=now)]
    if schedule.options.get("missed") == "once" and last_pass is not None:
        since = max(last_pass, schedule.created_on)
        if since < window:
            found.insert(0, latest_occurrence(schedule.cron, schedule.timezone, after=since, until=window))
    return [moment for moment in found if moment is not None]


def _slot_text(delivery: Delivery) -> str:
    # Filings of older releases have none; theirs is the minute in which they were made, later than any missed one.
    filed = delivery.data if isinstance(delivery.data, dict) else {}
    return str(filed.get("slot") or f"{delivery.created_on:%Y-%m-%d %H:%M:%S}")
