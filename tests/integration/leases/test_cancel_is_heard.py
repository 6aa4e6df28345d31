"""A producer's cancel reaches the worker with its next beat, also when the two come in the same instant."""

from collections.abc import Iterator

import pytest

from tests.integration.leases.ground import Ground, open_ground
from tests.integration.leases.situations import open_arena


@pytest.fixture
def ground(server_dsn: str, template_database: str) -> Iterator[Ground]:
    with open_ground(server_dsn, template_database) as ground:
        yield ground


def test_beat_that_waits_for_the_cancel_of_a_node_client_hears_of_it(ground: Ground) -> None:
    with open_arena(ground) as arena:
        outcomes = dict(arena.outcomes(arena.set("live"), ("node cancel", "beat")))
    # The cancel has written but not committed, and the beat waits for its lock. Told that its lease is lost, the worker
    # drops the job without a word: it seems to run until the lease is over, and then to have crashed.
    assert (0, 1, 0, 1) in outcomes, f"orders played: {sorted(outcomes)}"
    waited = dict(outcomes[0, 1, 0, 1])
    assert waited["answers"] == (1, "cancelled")
