"""Where a job's milliseconds go: its timeline beside the lives of its children."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from bench.figures import Cell
from bench.media.whole_worker import JobRun

#: from the call that sends the job to the first stage; and what lies between and after the stages
WAITING, BETWEEN, RECORDING = "sent to first stage", "between stages", "recording the result"


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    ms: float
    #: in children, by their name
    children_ms: dict[str, float]

    @property
    def overhead_ms(self) -> float:
        return self.ms - self.children_ms.get("ffmpeg", 0.0)


def steps_of(run: JobRun) -> list[Step]:
    spans = list(_spans(run))
    steps = [_step(run, name, start, end) for name, start, end in spans]
    between = [_step(run, BETWEEN, before[2], after[1]) for before, after in pairwise(spans)]
    return [*steps[:-1], Step(BETWEEN, sum(step.ms for step in between), {}), steps[-1]]


def as_rows(runs: Sequence[JobRun]) -> list[dict[str, Cell]]:
    """Medians over the runs, step by step."""
    taken_apart = [{step.name: step for step in steps_of(run)} for run in runs]
    return [_row(name, [steps[name] for steps in taken_apart]) for name in taken_apart[0]]


def _spans(run: JobRun) -> Iterator[tuple[str, float, float]]:
    began = {e.data["stage"]: e.at.timestamp() for e in run.events if e.kind == "stage:started" and e.data}
    ended = {e.data["stage"]: e.at.timestamp() for e in run.events if e.kind == "stage:finished" and e.data}
    yield WAITING, run.sent_at, min(began.values())
    for stage, at in began.items():
        yield stage, at, ended[stage]
    yield RECORDING, max(ended.values()), run.done_at


def _step(run: JobRun, name: str, start: float, end: float) -> Step:
    children = dict[str, float]()
    for child in run.children:
        if seconds := child.seconds_between(start, end):
            children[child.name] = children.get(child.name, 0.0) + seconds * 1000
    return Step(name, (end - start) * 1000, children)


def _row(name: str, steps: list[Step]) -> dict[str, Cell]:
    names = dict.fromkeys(child for step in steps for child in step.children_ms)
    children = [f"{child} {median(step.children_ms.get(child, 0.0) for step in steps):.0f}" for child in names]
    return {
        "step": name,
        "ms": round(median(step.ms for step in steps)),
        "of these in children": ", ".join(children) or None,
        "besides ffmpeg, ms": round(median(step.overhead_ms for step in steps)),
    }
