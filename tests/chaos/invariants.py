"""What must be true after every run, whatever was done to the workers, their database and their storage."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from tests.chaos.history import Event, History, JobRow, ProcessLife, Violation
from tests.chaos.replay import FINAL, replay
from tests.chaos.trace import Run, Taken, Write
from worker.domain.job import POISON_CRASHES

T = TypeVar("T", Taken, Run, Write)

#: which state of pgboss.job goes with which status of worker.jobs
AGREEING = frozenset(
    {
        ("queued", "created"),
        ("queued", "retry"),
        ("processing", "active"),
        ("done", "completed"),
        ("failed", "failed"),
        ("cancelled", "cancelled"),
    }
)
#: the wall clock of the database and the monotonic one drift apart a little under adjustment
CLOCK_SLACK_SECONDS = 0.02


def check_every_job_ended(history: History) -> list[Violation]:
    """accepted = done + failed + cancelled, by id."""
    found = []
    for job_id in sorted(history.accepted):
        job = history.jobs.get(job_id)
        if job is None:
            found.append(Violation("lost", job_id, "accepted, but there is no such job any more"))
        elif job.status not in FINAL and not _cancelled_while_waiting(history, job_id):
            found.append(Violation("lost", job_id, f"is still {job.status}"))
    unknown = history.jobs.keys() - history.accepted
    return found + [Violation("invented", job_id, "was never accepted") for job_id in sorted(unknown)]


def check_edges(history: History) -> list[Violation]:
    """One end a life, no way out of it, and a row that says what the timeline says."""
    found = []
    for job_id, job in history.jobs.items():
        life = replay(history.events.get(job_id, ()), may_be_revived=job_id in history.node.revived)
        found += [Violation("edge", job_id, problem) for problem in life.problems]
        if life.status != job.status:
            found.append(Violation("edge", job_id, f"its timeline ends {life.status}, its row says {job.status}"))
    return found


def check_attempts(history: History) -> list[Violation]:
    """attempt_count is exactly the number of attempts that ended without success."""
    found = []
    for job_id, job in history.jobs.items():
        life = replay(history.events.get(job_id, ()), may_be_revived=job_id in history.node.revived)
        found += [Violation("attempts", job_id, miscount) for miscount in life.miscounts]
        for name, told, counted in (
            ("attempt_count", job.attempt_count, life.attempts),
            ("crash_count", job.crash_count, life.crashes),
        ):
            if told != counted:
                found.append(Violation("attempts", job_id, f"{name} is {told}, its timeline has {counted}"))
    return found


def check_fence(history: History) -> list[Violation]:
    """Nothing is confirmed under a lease after a later one was given out."""
    latest = _by_job(history.traces.taken)
    found = []
    for write in history.traces.writes:
        for taken in latest.get(write.job, ()):
            if taken.token > write.token and taken.after < write.before:
                what = f"{write.name} of lease {write.token} by {write.process} went through"
                late = write.before - taken.after
                found.append(Violation("fence", write.job, f"{what} {late:.3f} s after lease {taken.token} was taken"))
                break
    return found


def check_leases_were_over(history: History) -> list[Violation]:
    """No lease is taken from a worker that renewed it in time."""
    renewed, taken = _renewals(history), _by_job(history.traces.taken)
    found = []
    for job_id, events in history.events.items():
        life = replay(events, may_be_revived=job_id in history.node.revived)
        lost = [(event, event.worker) for event in events if event.is_crash]
        lost += [(taking, held.worker) for taking, held in life.taken_over]
        for event, worker in lost:
            later = _taken_later(event, worker, events, taken.get(job_id, ()))
            mine = renewed.get((job_id, worker or ""), ())
            times = [before for token, before in mine if before <= event.at and token not in later]
            silent = event.at - max(times, default=float("-inf"))
            if silent < history.lease_seconds - CLOCK_SLACK_SECONDS:
                detail = f"{event.kind} although {worker} had renewed it {silent:.3f} s before"
                found.append(Violation("taken early", job_id, detail))
    return found


def check_runs_do_not_overlap(history: History) -> list[Violation]:
    """No two runs of a job at the same time, but for a worker that was frozen and could not know."""
    taken_at = {(taken.job, taken.token): taken.before for taken in history.traces.taken}
    found = []
    for job_id, runs in _by_job(history.traces.runs).items():
        runs.sort(key=lambda run: run.started_at)
        for index, run in enumerate(runs):
            for later in runs[index + 1 :]:
                end = _end(run, history.processes)
                # It may have slept before its run began, too: then the one that should not run has begun later.
                older = min(run, later, key=lambda each: each.token)
                since = taken_at.get((job_id, older.token), older.started_at)
                if later.started_at < end and not _was_frozen(older, since, history.processes):
                    detail = (
                        f"lease {run.token} ran in {run.process} for {end - later.started_at:.3f} s "
                        f"after lease {later.token} had begun in {later.process}"
                    )
                    found.append(Violation("overlap", job_id, detail))
    return found


def check_tables_agree(history: History) -> list[Violation]:
    found = []
    for job_id, job in history.jobs.items():
        delivery = history.deliveries.get(job_id, "gone")
        if (job.status, delivery) not in AGREEING and not _cancelled_while_waiting(history, job_id):
            found.append(Violation("tables", job_id, f"worker.jobs says {job.status}, pgboss.job {delivery}"))
    return found


def check_outcomes(history: History) -> list[Violation]:
    """Jobs end as their specs and their fates allow."""
    found = []
    for job_id, job in history.jobs.items():
        problem = _illegal_end(job, node_failed=job_id in history.node.failed)
        if problem:
            found.append(Violation("outcome", job_id, problem))
    return found


def check_results(history: History) -> list[Violation]:
    """The result is that of the last lease; no zombie's."""
    latest = {job: max(taken.token for taken in all_of) for job, all_of in _by_job(history.traces.taken).items()}
    found = []
    for job_id, job in history.jobs.items():
        if job.status == "done":
            token = (job.result or {}).get("lease_token")
            if token != latest.get(job_id):
                detail = f"the result is of lease {token}, the last one was {latest.get(job_id)}"
                found.append(Violation("result", job_id, detail))
    return found


def check_artifacts(history: History, stored: Mapping[str, str]) -> list[Violation]:
    """`stored`: for each key that a result points to, its sha256, or why there is none."""
    found = []
    for job_id, job in history.jobs.items():
        for artifact in (job.result or {}).get("artifacts", ()) if job.status == "done" else ():
            there = stored.get(artifact["key"], "it was not looked for")
            if there != artifact["sha256"]:
                detail = f"{artifact['key']} should be {artifact['sha256']}: {there}"
                found.append(Violation("artifact", job_id, detail))
    return found


def recovery_latencies(history: History, *, witnessed: bool = True) -> list[float]:
    """From a worker's death to the moment its job was taken back; outages, and a lease of grace after, left out.

    `witnessed`: only while another worker was there to do it: one that takes the silent for dead already, which none
    does in its first lease, and that was neither killed nor frozen meanwhile; and only if somebody looked when it was
    due, as a machine that is too busy may keep all of them from doing. That such samples are few is for others to see.
    """
    process_of = {taken.worker: taken.process for taken in history.traces.taken}
    samples = []
    for events in history.events.values():
        for event in events:
            life = history.processes.get(process_of.get(event.worker or "", ""))
            if not event.is_crash or life is None or life.died_at > event.at:
                continue
            is_fair = not witnessed or (_has_witness(history, life) and _was_looked_for(history, life))
            if is_fair and not _has_outage(history, life.died_at, event.at):
                samples.append(event.at - life.died_at)
    return sorted(samples)


def check_recovery(history: History) -> list[Violation]:
    samples = recovery_latencies(history)
    p99, bound = percentile(samples, 0.99), recovery_bound(history)
    if p99 is None or p99 <= bound:
        return []
    return [Violation("recovery", None, f"p99 of {len(samples)} recoveries is {p99:.2f} s, allowed are {bound:.2f}")]


def recovery_bound(history: History) -> float:
    return (history.lease_seconds + history.scan_seconds) * 1.1


def percentile(samples: Sequence[float], share: float) -> float | None:
    """By nearest rank, of sorted samples."""
    if not samples:
        return None
    return samples[max(0, math.ceil(share * len(samples)) - 1)]


CHECKS: tuple[Callable[[History], list[Violation]], ...] = (
    check_every_job_ended,
    check_edges,
    check_attempts,
    check_fence,
    check_leases_were_over,
    check_runs_do_not_overlap,
    check_tables_agree,
    check_outcomes,
    check_results,
    check_recovery,
)


def check_history(history: History) -> list[Violation]:
    return [violation for check in CHECKS for violation in check(history)]


def _illegal_end(job: JobRow, *, node_failed: bool) -> str | None:
    wanted = job.spec.get("chaos") or {}
    if job.status == "done" and (wanted.get("fatal") or wanted.get("kill") == "always"):
        return "is done, which it cannot be"
    if job.status != "failed":
        return None
    match job.error_code:
        case "POISON_JOB" if job.crash_count >= POISON_CRASHES:
            return None
        case "RETRIES_EXHAUSTED" if job.attempt_count >= job.max_attempts:
            return None
        case "SOURCE_NOT_FOUND" if wanted.get("fatal"):
            return None
        case "DELIVERY_GONE" if node_failed:
            return None
    return f"failed with {job.error_code} (attempts {job.attempt_count}, crashes {job.crash_count})"


def _cancelled_while_waiting(history: History, job_id: str) -> bool:
    """docs/pg-boss.md: Node's cancel of a waiting job is known to pg-boss only; it does not run."""
    job = history.jobs[job_id]
    cancelled = history.deliveries.get(job_id) == "cancelled" and job_id in history.node.cancelled
    return cancelled and job.status == "queued"


def _renewals(history: History) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """When a worker took or renewed a lease, at the earliest, and which one; by job and worker."""
    worker_of = {(taken.job, taken.token): taken.worker for taken in history.traces.taken}
    renewed: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    for taken in history.traces.taken:
        renewed[taken.job, taken.worker].append((taken.token, taken.before))
    for write in history.traces.writes:
        if write.name == "beat" and (write.job, write.token) in worker_of:
            renewed[write.job, worker_of[write.job, write.token]].append((write.token, write.before))
    return renewed


def _taken_later(loss: Event, worker: str | None, events: Sequence[Event], taken: Sequence[Taken]) -> set[int]:
    """Leases that the same worker got in the statement that took this one, or after it. A slow one begins before."""
    later = [event for event in events if event.kind == "acquired" and event.worker == worker and event.id >= loss.id]
    mine = [each for each in taken if each.worker == worker]
    return {each.token for each in mine if any(each.before <= event.at <= each.after for event in later)}


def _has_outage(history: History, since: float, until: float) -> bool:
    return any(
        outage.began_at < until and outage.ended_at + history.lease_seconds > since for outage in history.outages
    )


def _has_witness(history: History, dead: ProcessLife) -> bool:
    until = dead.died_at + recovery_bound(history)
    return any(
        history.traces.ready.get(life.name, float("inf")) <= dead.died_at
        and life.died_at >= until
        and not any(frozen < until and thawed > dead.died_at for frozen, thawed in life.freezes)
        for life in history.processes.values()
        if life is not dead
    )


def _was_looked_for(history: History, dead: ProcessLife) -> bool:
    """Whether somebody who takes the silent for dead looked, all of it after the lease was over and in good time."""
    due, late = dead.died_at + history.lease_seconds, dead.died_at + recovery_bound(history)
    return any(scan.silent_are_dead and scan.began_at >= due and scan.ended_at <= late for scan in history.traces.scans)


def _end(run: Run, processes: Mapping[str, ProcessLife]) -> float:
    if run.ended_at is not None:
        return run.ended_at
    life = processes.get(run.process)
    return life.died_at if life else float("inf")


def _was_frozen(run: Run, taken_at: float, processes: Mapping[str, ProcessLife]) -> bool:
    life = processes.get(run.process)
    return life is not None and any(since < _end(run, processes) and until > taken_at for since, until in life.freezes)


def _by_job(records: Sequence[T]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = defaultdict(list)
    for record in records:
        found[record.job].append(record)
    return found
