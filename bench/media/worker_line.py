"""One exact clip through the whole worker beside the bare ffmpeg command it runs, and where the difference goes."""

from statistics import median
from typing import Any

from bench.cost import Cost, cost_of, run_command
from bench.figures import Bound, Line, Target
from bench.media.breakdown import as_rows
from bench.media.children import bare_argv
from bench.media.ground import Ground
from bench.media.whole_worker import JobRun, open_bench
from worker.domain.media import ClipRange


async def measure_worker(ground: Ground) -> list[Line]:
    """Worker and bare command take turns, so that what else the machine does meets both."""
    directory = ground.room("worker")
    wanted = ground.span(ground.sizes.short_seconds)
    runs, bare, besides = list[JobRun](), list[Cost](), list[float]()
    async with open_bench(
        directory, sources=ground.source.path.parent, max_concurrency=1, database_url=ground.database_url
    ) as bench:
        ground.tell("warming the worker up")
        await bench.run_one(exact_spec(ground, ground.span(1.0)))
        for turn in range(ground.sizes.rounds):
            ground.tell(f"exact clip through the worker and bare: {turn + 1} of {ground.sizes.rounds}")
            run, cost = await cost_of(bench.run_one(exact_spec(ground, wanted)))
            runs.append(run)
            besides.append(cost.cpu_seconds - sum(child.cpu_seconds for child in run.ffmpegs))
            command = bare_argv(run.cut, str(run.job_id), directory)
            bare.append((await cost_of(run_command(command)))[1])
    return [_compared(ground, runs, bare, besides), _taken_apart(runs)]


def exact_spec(ground: Ground, wanted: ClipRange) -> dict[str, Any]:
    source = ground.source.path.absolute().as_uri()
    return {"source": source, "start": wanted.start_seconds, "end": wanted.end_seconds, "mode": "exact"}


def _compared(ground: Ground, runs: list[JobRun], bare: list[Cost], besides: list[float]) -> Line:
    worker = median(run.wall_seconds for run in runs)
    alone = median(cost.wall_seconds for cost in bare)
    ratio = median(run.wall_seconds / cost.wall_seconds for run, cost in zip(runs, bare, strict=True))
    overhead = median(run.overhead_seconds for run in runs)
    return Line(
        "worker",
        f"One exact clip of {ground.sizes.short_seconds:g} s through the whole worker (local source, poster, no ASR)",
        [
            {
                "": "through the worker",
                "wall s": worker,
                "besides ffmpeg, ms": round(overhead * 1000),
                "CPU besides ffmpeg, ms": round(median(besides) * 1000),
            },
            {"": "bare ffmpeg command", "wall s": alone},
        ],
        [
            Target("wall of the bare command", ratio, Bound.AT_MOST, 1.10),
            Target("overhead besides ffmpeg", overhead * 1000, Bound.AT_MOST, 250, "ms"),
        ],
        [f"medians of {len(runs)} turns; the ratio is the median of the ratios within a turn"],
    )


def _taken_apart(runs: list[JobRun]) -> Line:
    remarks = ["medians, so the steps need not add up to the whole"]
    return Line("breakdown", "Where the milliseconds of that job go", [*as_rows(runs)], [], remarks)
