"""The jobs of a run: drawn from a seed, sent through the SQL API, remembered once the database has them."""

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tests.chaos.postgres import AWAY, ChaosPostgres

BATCH = 100
#: what an operator's or a Node application's mistake must not cost: a job is only lost by too many crashes
OPTIONS = {"retryLimit": 60, "retryDelay": 0, "retryBackoff": False}


@dataclass(frozen=True, slots=True)
class Mix:
    """Shares of all jobs; what is left over just sleeps."""

    transient: float = 0.05
    fatal: float = 0.01
    kills_once: float = 0.003
    kills_always: float = 0.002
    artifact: float = 0.25
    child: float = 0.03
    media: float = 0.01
    sleep_ms: tuple[int, int] = (20, 600)
    #: addresses of the sample
    sources: Sequence[str] = ()


@dataclass(slots=True)
class Workload:
    mix: Mix
    seed: str
    accepted: list[str] = field(default_factory=list)
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    async def submit(self, postgres: ChaosPostgres, count: int) -> None:
        """All of them, however often the database goes away in between: ids are ours, so a repetition is harmless."""
        for first in range(0, count, BATCH):
            batch = [self._job() for _ in range(min(BATCH, count - first))]
            while not await _send(postgres, batch):
                await asyncio.sleep(0.2)
            self.accepted += [job_id for job_id, _ in batch]

    def pick(self, choice: random.Random) -> UUID | None:
        """One of the younger jobs."""
        young = self.accepted[-400:]
        return UUID(choice.choice(young)) if young else None

    def _job(self) -> tuple[str, dict[str, Any]]:
        draw, mix = self._random, self.mix
        job_id = str(UUID(int=draw.getrandbits(128), version=4))
        if mix.sources and draw.random() < mix.media:
            start = round(draw.uniform(0, 4), 2)
            source = draw.choice(list(mix.sources))
            return job_id, {"source": source, "start": start, "end": start + 2.0, "transcript": False}
        wanted: dict[str, Any] = {"sleep_ms": draw.randint(*mix.sleep_ms)}
        if draw.random() < mix.artifact:
            wanted["artifact_bytes"] = draw.randint(1, 20_000)
        if draw.random() < mix.child:
            wanted["child_seconds"] = round(draw.uniform(0.1, 2), 2)
        kind = draw.random()
        for name, value, share in (
            ("fail_attempts", draw.randint(1, 3), mix.transient),
            ("fatal", True, mix.fatal),
            ("kill", "once", mix.kills_once),
            ("kill", "always", mix.kills_always),
        ):
            if 0 <= kind < share:
                wanted[name] = value
            kind -= share
        return job_id, {"chaos": wanted}


async def _send(postgres: ChaosPostgres, batch: Sequence[tuple[str, dict[str, Any]]]) -> bool:
    try:
        connection = await postgres.connect()
        try:
            await connection.executemany(
                "SELECT worker.submit('clip', $1::jsonb, $2::jsonb)",
                [(json.dumps(spec), json.dumps({**OPTIONS, "id": job_id})) for job_id, spec in batch],
            )
        finally:
            connection.terminate()
    except AWAY:
        return False
    return True
