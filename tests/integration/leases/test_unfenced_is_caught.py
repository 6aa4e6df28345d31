"""The tests of leases can fail: each of them tells a store without fences from the real one."""

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.integration.leases.fleet import Fleet
from tests.integration.leases.ground import Ground, open_ground
from tests.integration.leases.situations import LEASED, open_arena
from tests.integration.leases.test_interleavings import surprises
from tests.integration.leases.test_lease_model import WRITES, LeaseMachine
from tests.integration.leases.unfenced import STORE_FENCES, UnfencedStore, without_fences
from worker.jobs.store import JobStore


@pytest.fixture(scope="module")
def ground(server_dsn: str, template_database: str) -> Iterator[Ground]:
    with open_ground(server_dsn, template_database) as ground:
        yield ground


def zombie_acts(fleet: Fleet, act: str) -> None:
    """A worker falls silent, another takes its job over, and the first comes back."""
    fleet.submit(2)
    (zombie,) = fleet.acquire(0)
    fleet.expire(0)
    fleet.scan()
    fleet.acquire(1)
    getattr(fleet, act)(zombie)
    fleet.check()


@pytest.mark.parametrize("act", [*WRITES, "beat"])
def test_model_catches_the_act_of_a_zombie_without_fences(ground: Ground, act: str) -> None:
    zombie_acts(Fleet(ground, JobStore), act)
    with pytest.raises(AssertionError, match=r"under a lost lease went through|held instead of lost"):
        zombie_acts(Fleet(ground, UnfencedStore), act)


def test_random_histories_find_the_missing_fences(ground: Ground) -> None:
    search = settings(
        max_examples=300,
        stateful_step_count=40,
        deadline=None,
        derandomize=True,
        database=None,
        # Finding it is the point; the shortest way to it is not.
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    with pytest.raises(AssertionError, match=r"under a lost lease went through|held instead of lost"):
        run_state_machine_as_test(lambda: LeaseMachine(ground, UnfencedStore, Counter()), settings=search)


@pytest.mark.parametrize("write", sorted(LEASED))
@pytest.mark.parametrize("other", ["acquire", "finish", "scan"])
def test_interleavings_catch_a_zombie_without_fences(ground: Ground, write: str, other: str) -> None:
    with open_arena(ground) as arena:
        assert surprises(arena, "taken over", (write, other)) == []
    with open_arena(ground, UnfencedStore) as arena:
        found = surprises(arena, "taken over", (write, other))
    assert any("the zombie's write went through" in surprise for surprise in found)


def test_fence_that_is_not_there_cannot_be_taken_out() -> None:
    with pytest.raises(AssertionError, match="has no fence"):
        without_fences({"beat": "SELECT 1"}, {"beat": STORE_FENCES["beat"]})
