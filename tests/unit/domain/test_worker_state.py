"""Who counts as alive, late and dead."""

import pytest

from worker.domain.worker import WorkerState, worker_state


@pytest.mark.parametrize(
    ("silent", "expected", "state"),
    [
        (0.0, 10.0, "alive"),
        (-0.1, 10.0, "alive"),  # a heartbeat that came in while we looked
        (11.5, 10.0, "alive"),  # loops vary their pace
        (15.1, 10.0, "late"),
        (20.0, 10.0, "late"),
        (20.1, 10.0, "dead"),
        (20.1, 60.0, "alive"),  # each by its own interval
        (None, None, "unregistered"),
    ],
)
def test_worker_is_judged_by_its_own_interval(silent: float | None, expected: float | None, state: str) -> None:
    assert worker_state(silent, expected, is_stopped=False) == state


def test_worker_that_said_good_bye_is_not_dead() -> None:
    assert worker_state(1000.0, 10.0, is_stopped=True) is WorkerState.STOPPED
