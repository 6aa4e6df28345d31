"""Several exact clips at once through one worker beside the same ffmpeg commands one after another."""

from bench.cost import cost_of, run_command
from bench.figures import Bound, Line, Target
from bench.media.children import bare_argv
from bench.media.ground import Ground
from bench.media.whole_worker import open_bench
from bench.media.worker_line import exact_spec

SLOTS = 2


async def measure_crowd(ground: Ground) -> list[Line]:
    directory = ground.room("crowd")
    sizes = ground.sizes
    places = [(number + 1) / (sizes.crowd + 1) for number in range(sizes.crowd)]
    specs = [exact_spec(ground, ground.span(sizes.crowd_seconds, place=place)) for place in places]
    async with open_bench(
        directory, sources=ground.source.path.parent, max_concurrency=SLOTS, database_url=ground.database_url
    ) as bench:
        await bench.run_one(exact_spec(ground, ground.span(1.0)))
        ground.tell(f"{sizes.crowd} jobs at once, {SLOTS} at a time")
        runs, jobs = await cost_of(bench.run(specs))
    ground.tell(f"{sizes.crowd} bare ffmpeg commands, one after another")
    commands = [bare_argv(run.cut, str(run.job_id), directory) for run in runs]
    wall, cpu = max(run.done_at for run in runs) - min(run.sent_at for run in runs), 0.0
    alone = 0.0
    for command in commands:
        _, cost = await cost_of(run_command(command))
        alone, cpu = alone + cost.wall_seconds, cpu + cost.cpu_seconds
    return [
        Line(
            "crowd",
            f"{sizes.crowd} exact clips of {sizes.crowd_seconds:g} s, {SLOTS} at a time",
            [
                {"": "through one worker", "wall s": wall, "CPU s": jobs.cpu_seconds},
                {"": "bare ffmpeg, one after another", "wall s": alone, "CPU s": cpu},
            ],
            [Target("wall of one after another", wall / alone, Bound.AT_MOST, 1.0)],
            ["the worker's part has a poster and a verified, stored clip each"],
        )
    ]
