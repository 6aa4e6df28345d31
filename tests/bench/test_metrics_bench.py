"""The benchmark of a scrape still runs; how fast, it tells when somebody asks."""

import pytest

from bench.metrics.__main__ import check, measure
from worker.telemetry.backlog import QueueDepth


async def test_every_state_of_the_table_is_measured(empty_dsn: str) -> None:
    found = await measure(empty_dsn, queued=300, finished=200, times=2)
    assert list(found) == ["empty table", "just written", "vacuumed"]
    assert all(len(spent) == 2 and min(spent) > 0 for spent in found.values())


def test_wrong_numbers_are_not_measured() -> None:
    with pytest.raises(AssertionError, match="299"):
        check(QueueDepth("clip", 299, 0, 1.0), 300)
