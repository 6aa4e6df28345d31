"""Every check finds what it is there to find, in histories made up to be wrong in one way each."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.history import Event, History, JobRow, NodeDeeds, ProcessLife, Violation
from tests.chaos.invariants import (
    CHECKS,
    check_artifacts,
    check_attempts,
    check_edges,
    check_every_job_ended,
    check_fence,
    check_history,
    check_leases_were_over,
    check_outcomes,
    check_recovery,
    check_results,
    check_runs_do_not_overlap,
    check_tables_agree,
    percentile,
    recovery_latencies,
)
from tests.chaos.postgres import Outage
from tests.chaos.trace import Run, Scan, Taken, Traces, Write

JOB = "a1"
#: of workers `A` (process 0.1) and `B` (process 1.2)
LIVES = {"0.1": ProcessLife("0.1", died_at=10.5), "1.2": ProcessLife("1.2", died_at=100.0)}


def good() -> History:
    """A job whose first worker died, and whose second finished it; leases last 3 s."""
    told: list[tuple[float, int | None, str | None, str, dict[str, Any]]] = [
        (9.0, None, None, "submitted", {}),
        (10.0, 1, "A", "acquired", {}),
        (10.1, 1, "A", "stage:started", {"stage": "clip"}),
        (13.6, 1, "A", "requeued:stale", {"last_heartbeat_at": "…"}),
        (14.0, 2, "B", "acquired", {}),
        (15.0, 2, "B", "done", {}),
    ]
    return History(
        lease_seconds=3.0,
        scan_seconds=0.5,
        accepted=frozenset({JOB}),
        jobs={JOB: JobRow(JOB, "done", 1, 5, 1, None, {"chaos": {}}, {"lease_token": 2, "artifacts": [_artifact()]})},
        deliveries={JOB: "completed"},
        events={JOB: [Event(number, *each) for number, each in enumerate(told)]},
        traces=Traces(
            taken=[Taken("0.1", "A", JOB, 1, 9.99, 10.01), Taken("1.2", "B", JOB, 2, 13.99, 14.01)],
            runs=[Run("0.1", JOB, 1, 10.02, None), Run("1.2", JOB, 2, 14.02, 14.9)],
            writes=[Write("0.1", "beat", JOB, 1, 10.4, 10.45), Write("1.2", "finish", JOB, 2, 14.95, 15.0)],
            hits=[],
            ready={"0.1": 1.0, "1.2": 9.0},
            scans=[_scan(9.0 + number / 2, 9.01 + number / 2, True) for number in range(20)],
        ),
        processes=LIVES,
    )


def _scan(began_at: float, ended_at: float, silent_are_dead: bool) -> Scan:
    return Scan("1.2", began_at, ended_at, silent_are_dead)


def _artifact() -> dict[str, str]:
    return {"key": "k", "sha256": "s"}


def with_job(history: History, **changes: Any) -> History:
    return replace(history, jobs={JOB: replace(history.jobs[JOB], **changes)})


def with_events(history: History, change: Callable[[list[Event]], list[Event]]) -> History:
    return replace(history, events={JOB: change(list(history.events[JOB]))})


def with_traces(history: History, **changes: Any) -> History:
    return replace(history, traces=replace(history.traces, **changes))


def test_a_good_history_passes_every_check() -> None:
    assert check_history(good()) == []
    assert check_artifacts(good(), {"k": "s"}) == []


def _lost_row() -> History:
    return replace(good(), jobs={})


def _never_ended() -> History:
    return with_job(good(), status="processing")


def _invented() -> History:
    return replace(good(), accepted=frozenset())


def _ended_twice() -> History:
    return with_events(good(), lambda events: [*events, Event(9, 16.0, 2, "A", "done")])


def _left_its_end() -> History:
    return with_events(good(), lambda events: [*events, Event(9, 16.0, 2, "A", "acquired")])


def _row_differs_from_timeline() -> History:
    return with_job(good(), status="failed")


def _unknown_event() -> History:
    return with_events(good(), lambda events: [*events[:-1], Event(8, 14.5, 2, "B", "surprise"), events[-1]])


def _attempt_forgotten() -> History:
    return with_job(good(), attempt_count=0)


def _crash_forgotten() -> History:
    return with_job(good(), crash_count=0)


def _attempt_numbered_wrongly() -> History:
    return with_events(good(), lambda events: [*events[:4], replace(events[4], attempt=3), events[5]])


def _zombie_write() -> History:
    return with_traces(good(), writes=[Write("0.1", "finish", JOB, 1, 14.5, 14.6)])


def _taken_from_the_living() -> History:
    return with_traces(good(), writes=[Write("0.1", "beat", JOB, 1, 12.0, 12.1)])


def _taken_over_from_the_living() -> History:
    history = with_events(good(), lambda events: [*events[:3], *events[4:]])
    return with_traces(history, writes=[Write("0.1", "beat", JOB, 1, 12.0, 12.1)])


def _two_at_once() -> History:
    return replace(good(), processes={**LIVES, "0.1": ProcessLife("0.1", died_at=14.5)})


def _tables_differ() -> History:
    return replace(good(), deliveries={JOB: "active"})


def _delivery_gone() -> History:
    return replace(good(), deliveries={})


def _failed_for_no_reason() -> History:
    return with_job(good(), status="failed", error_code="INTERNAL_ERROR")


def _poison_without_crashes() -> History:
    return with_job(good(), status="failed", error_code="POISON_JOB", crash_count=2)


def _exhausted_too_soon() -> History:
    return with_job(good(), status="failed", error_code="RETRIES_EXHAUSTED")


def _done_against_its_spec() -> History:
    return with_job(good(), spec={"chaos": {"fatal": True}})


def _result_of_a_zombie() -> History:
    return with_job(good(), result={"lease_token": 1})


def _recovered_late() -> History:
    return with_events(good(), lambda events: [*events[:3], replace(events[3], at=14.8), *events[4:]])


@pytest.mark.parametrize(
    ("check", "history"),
    [
        (check_every_job_ended, _lost_row),
        (check_every_job_ended, _never_ended),
        (check_every_job_ended, _invented),
        (check_edges, _ended_twice),
        (check_edges, _left_its_end),
        (check_edges, _row_differs_from_timeline),
        (check_edges, _unknown_event),
        (check_attempts, _attempt_forgotten),
        (check_attempts, _crash_forgotten),
        (check_attempts, _attempt_numbered_wrongly),
        (check_fence, _zombie_write),
        (check_leases_were_over, _taken_from_the_living),
        (check_leases_were_over, _taken_over_from_the_living),
        (check_runs_do_not_overlap, _two_at_once),
        (check_tables_agree, _tables_differ),
        (check_tables_agree, _delivery_gone),
        (check_outcomes, _failed_for_no_reason),
        (check_outcomes, _poison_without_crashes),
        (check_outcomes, _exhausted_too_soon),
        (check_outcomes, _done_against_its_spec),
        (check_results, _result_of_a_zombie),
        (check_recovery, _recovered_late),
    ],
    ids=lambda each: each.__name__.strip("_"),
)
def test_check_reports_its_violation(
    check: Callable[[History], list[Violation]], history: Callable[[], History]
) -> None:
    assert check(good()) == []
    assert check(history()) != []
    assert check in CHECKS


@pytest.mark.parametrize("stored", [{}, {"k": "other"}, {"k": "cannot be read: NoSuchKey"}])
def test_pointer_to_nothing_or_to_something_else_is_reported(stored: dict[str, str]) -> None:
    assert [violation.check for violation in check_artifacts(good(), stored)] == ["artifact"]


def test_overlap_is_excused_for_a_worker_that_was_frozen() -> None:
    frozen = ProcessLife("0.1", died_at=14.5, freezes=[(10.3, 14.3)])
    assert check_runs_do_not_overlap(replace(good(), processes={**LIVES, "0.1": frozen})) == []
    earlier = ProcessLife("0.1", died_at=14.5, freezes=[(8.0, 9.0)])
    assert check_runs_do_not_overlap(replace(good(), processes={**LIVES, "0.1": earlier})) != []


def test_overlap_is_excused_for_the_older_lease_alone_which_may_begin_later() -> None:
    begun_late = with_traces(good(), runs=[Run("0.1", JOB, 1, 14.5, 14.6), Run("1.2", JOB, 2, 14.02, 14.9)])
    asleep = [(10.3, 14.4)]
    older = ProcessLife("0.1", died_at=20.0, freezes=asleep)
    assert check_runs_do_not_overlap(replace(begun_late, processes={**LIVES, "0.1": older})) == []
    awake = ProcessLife("0.1", died_at=20.0)
    newer = ProcessLife("1.2", died_at=20.0, freezes=asleep)
    assert check_runs_do_not_overlap(replace(begun_late, processes={"0.1": awake, "1.2": newer})) != []


def test_lease_handed_back_may_be_taken_at_once_and_costs_no_attempt() -> None:
    told = [(9.0, None, None, "submitted"), (10.0, 1, "A", "acquired"), (10.5, 1, "A", "aborted:shutdown")]
    told += [(10.6, 1, "A", "requeued:handed-back"), (10.7, 1, "B", "acquired"), (15.0, 1, "B", "done")]
    history = with_events(good(), lambda _: [Event(number, *each) for number, each in enumerate(told)])
    history = with_job(history, attempt_count=0, crash_count=0)
    assert check_edges(history) + check_attempts(history) + check_leases_were_over(history) == []


@pytest.mark.parametrize(("again_at", "is_legal"), [(13.6, True), (12.6, False)])
def test_worker_may_take_over_from_itself_once_its_lease_is_over(again_at: float, is_legal: bool) -> None:
    told = [(10.0, 1, "A", "acquired"), (again_at, 2, "A", "acquired"), (15.0, 2, "A", "done")]
    history = with_events(good(), lambda _: [Event(number, *each) for number, each in enumerate(told)])
    taken = [Taken("0.1", "A", JOB, 1, 9.99, 10.01), Taken("0.1", "A", JOB, 2, again_at - 0.01, again_at + 0.01)]
    assert (check_leases_were_over(with_traces(history, taken=taken)) == []) is is_legal


def test_slow_statement_that_took_a_job_again_does_not_count_as_a_renewal_of_the_lease_that_was_lost() -> None:
    """Sent before the loss, it came through after it."""
    told = [(10.0, 1, "A", "acquired", {}), (13.6, 1, "A", "requeued:stale", {"last_heartbeat_at": "…"})]
    told += [(13.7, 2, "A", "acquired", {}), (15.0, 2, "A", "done", {})]
    history = with_events(good(), lambda _: [Event(number, *each) for number, each in enumerate(told)])
    taken = [Taken("0.1", "A", JOB, 1, 9.99, 10.01), Taken("0.1", "A", JOB, 2, 12.5, 13.8)]
    assert check_leases_were_over(with_traces(history, taken=taken)) == []
    renewed = [Write("0.1", "beat", JOB, 1, 12.0, 12.1)]
    assert check_leases_were_over(with_traces(history, taken=taken, writes=renewed)) != []


def test_node_cancel_of_a_waiting_job_is_the_documented_exception() -> None:
    history = with_job(replace(good(), deliveries={JOB: "cancelled"}), status="queued")
    assert check_tables_agree(history) != []
    assert check_every_job_ended(history) != []
    history = replace(history, node=NodeDeeds(cancelled=frozenset({JOB})))
    assert check_tables_agree(history) + check_every_job_ended(history) == []


def test_revival_by_node_leaves_no_event_and_is_legal_only_if_it_happened() -> None:
    told = [(10.0, 1, "A", "acquired", {}), (11.0, 1, "A", "failed", {"code": "POISON_JOB"})]
    told += [(12.0, 2, "B", "acquired", {}), (15.0, 2, "B", "done", {})]
    history = with_events(good(), lambda _: [Event(number, *each) for number, each in enumerate(told)])
    history = with_job(history, crash_count=0)
    assert check_edges(history) != []
    assert check_edges(replace(history, node=NodeDeeds(revived=frozenset({JOB})))) == []


def test_recovery_is_measured_from_the_death_and_not_during_an_outage() -> None:
    (latency,) = recovery_latencies(good())
    assert latency == pytest.approx(3.1)
    assert recovery_latencies(replace(good(), outages=[Outage(11.0, 12.0)])) == []
    # the grace of one lease after an outage counts as part of it
    assert recovery_latencies(replace(good(), outages=[Outage(7.0, 8.0)])) == []
    assert recovery_latencies(replace(good(), outages=[Outage(6.0, 7.0)])) == [latency]


def test_recovery_is_not_measured_when_nobody_was_there_to_do_it() -> None:
    assert recovery_latencies(with_traces(good(), ready={"1.2": 11.0})) == []
    assert recovery_latencies(replace(good(), processes={**LIVES, "1.2": ProcessLife("1.2", died_at=12.0)})) == []
    frozen = ProcessLife("1.2", died_at=100.0, freezes=[(11.0, 12.0)])
    assert recovery_latencies(replace(good(), processes={**LIVES, "1.2": frozen})) == []
    assert len(recovery_latencies(with_traces(good(), ready={}), witnessed=False)) == 1


@pytest.mark.parametrize(
    ("scans", "judged"),
    [
        # who looks when it is due, and does not find it, is late whatever the machine does
        ([(13.0, 13.1, True), (13.7, 13.8, True), (14.7, 14.8, True)], 1),
        # a machine too busy to look in time, or to come to the end of a look
        ([(13.0, 13.1, True), (14.7, 14.8, True)], 0),
        ([(13.4, 13.6, True), (13.7, 14.8, True)], 0),
        # the grace after an outage, or after nobody looked for long
        ([(13.7, 13.8, False)], 0),
        ([], 0),
    ],
)
def test_recovery_is_not_measured_when_nobody_could_look(scans: list[tuple[float, float, bool]], judged: int) -> None:
    late = with_traces(_recovered_late(), scans=[_scan(*scan) for scan in scans])
    assert len(recovery_latencies(late)) == judged
    assert len(check_recovery(late)) == judged
    assert len(recovery_latencies(late, witnessed=False)) == 1


def test_percentiles_are_by_nearest_rank() -> None:
    assert percentile([], 0.99) is None
    assert percentile([1.0], 0.99) == 1.0
    assert percentile([float(number) for number in range(1, 101)], 0.99) == 99.0
    assert percentile([float(number) for number in range(1, 101)], 0.5) == 50.0
