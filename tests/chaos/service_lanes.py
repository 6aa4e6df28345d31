"""Faults of what workers depend on: the database, the way to it, and S3."""

import asyncio
import random

from tests.chaos.fleet import Launch
from tests.chaos.lanes import Lane
from tests.chaos.proxy import FaultProxy, Mode
from tests.chaos.rig import Rig

S3_FAULT_SHARE = 0.01


async def restart_fast(rig: Rig, choice: random.Random) -> int:
    await rig.postgres.restart(immediate=False, down_seconds=choice.uniform(0, 1.5))
    return 1


async def restart_immediate(rig: Rig, choice: random.Random) -> int:
    """As if the server had crashed."""
    await rig.postgres.restart(immediate=True, down_seconds=choice.uniform(0, 1.5))
    return 1


async def terminate_backends(rig: Rig, choice: random.Random) -> int:
    connection = await rig.postgres.connect()
    try:
        async with rig.postgres.outage():
            return await connection.fetchval(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                "WHERE application_name LIKE 'clipboss:%' AND pid % $1 = 0",
                choice.randint(1, 4),
            )
    finally:
        await connection.close()


async def read_only(rig: Rig, choice: random.Random) -> int:
    async with rig.postgres.read_only():
        await asyncio.sleep(choice.uniform(0.5, 2))
    return 1


async def blackhole(rig: Rig, choice: random.Random) -> int:
    """One worker is cut off for up to two leases, and does not know."""
    proxy = choice.choice(rig.proxies)
    async with rig.postgres.outage():
        proxy.mode = Mode.BLACKHOLE
        try:
            await asyncio.sleep(choice.uniform(0.2, 2) * rig.pace.lease_seconds)
        finally:
            proxy.reset()
            proxy.mode = Mode.PASS
    return 1


async def slow_down(rig: Rig, choice: random.Random) -> int:
    proxy = choice.choice(rig.proxies)
    proxy.latency_seconds = choice.uniform(0.02, 0.2)
    async with rig.postgres.outage():
        proxy.mode = Mode.LATENCY
        try:
            await asyncio.sleep(choice.uniform(1, 4))
        finally:
            proxy.mode = Mode.PASS
    return 1


async def refuse(rig: Rig, choice: random.Random) -> int:
    proxy = choice.choice(rig.proxies)
    async with rig.postgres.outage():
        proxy.mode = Mode.REFUSE
        proxy.reset()
        try:
            await asyncio.sleep(choice.uniform(0.2, 2))
        finally:
            proxy.mode = Mode.PASS
    return 1


async def reset(rig: Rig, choice: random.Random) -> int:
    async with rig.postgres.outage():
        _some(rig, choice).reset()
    return 1


async def cut(rig: Rig, choice: random.Random) -> int:
    async with rig.postgres.outage():
        _some(rig, choice).cut_after(choice.randint(1, 20_000))
    return 1


async def fail_s3(rig: Rig, choice: random.Random) -> int:
    """A share of all requests, for as long as the lane runs; counts those that were hit."""
    before = sum(rig.s3_faults.injected.values())
    rig.s3_faults.probability = S3_FAULT_SHARE
    await asyncio.sleep(choice.uniform(0.5, 1))
    return sum(rig.s3_faults.injected.values()) - before


def service_lanes() -> list[Lane]:
    return [
        Lane("pg-restart", 45, restart_fast),
        Lane("pg-crash", 60, restart_immediate),
        Lane("pg-terminate", 10, terminate_backends),
        Lane("read-only", 40, read_only),
        Lane("blackhole", 20, blackhole),
        Lane("latency", 20, slow_down),
        Lane("refuse", 25, refuse),
        Lane("reset", 9, reset),
        Lane("cut", 11, cut),
        Lane("s3-errors", 0.01, fail_s3),
    ]


class PoolerLane(Lane):
    """No fault, but another way to the database for every fourth worker; counts those that started behind it."""

    def __init__(self, missing: str | None) -> None:
        super().__init__("pgbouncer", 3600, reset, missing)

    async def run(self, rig: Rig) -> None:
        rig.traits.append(lambda launch, process: self._count(rig, launch, process))

    def _count(self, rig: Rig, launch: Launch, process: str) -> Launch:
        self.count += rig.is_pooled(int(process.split(".", maxsplit=1)[0]))
        return launch


def _some(rig: Rig, choice: random.Random) -> FaultProxy:
    return choice.choice(rig.proxies)
