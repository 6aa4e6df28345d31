"""`./dev bench pages`: a long job in one piece and in pages: wall time and output. It never fails a build."""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.figures import Bound, Cell, Line, Target, as_json, as_markdown
from bench.pages.machines import Hall, NoShares, machines
from bench.pages.outputs import Comparison, clip_of, compare, decode
from bench.pages.source import make_lecture
from worker.app import install
from worker.db.embedded import EmbeddedPostgres
from worker.db.pool import Pool, open_pool
from worker.domain.job import JobStatus
from worker.jobs.desk import JobDesk
from worker.queue import PgBoss
from worker.settings import load_settings

LINES = ("same-cores", "machines")
FPS = 25
QUEUE = "clip"
LOOK_SECONDS = 0.25
#: of each simulated machine, in cores
SHARE = 0.5
MACHINES = 4
LAST_PAGE = """
SELECT extract(epoch FROM max(page.finished_at) - min(job.created_at))::float8
FROM worker.pages AS page JOIN worker.jobs AS job ON job.id = page.run_id WHERE page.run_id = $1
"""


@dataclass(frozen=True, slots=True)
class Sizes:
    seconds: float
    size: tuple[int, int]
    page_seconds: int


FULL = Sizes(1800, (426, 240), 120)
QUICK = Sizes(240, (426, 240), 30)


@dataclass(frozen=True, slots=True)
class Run:
    wall_seconds: float
    result: dict[str, Any]
    #: on the clip's timeline
    borders: list[float]
    #: from sending the job to its last page; 0 for one that was not split
    pages_seconds: float


@dataclass(slots=True)
class Ground:
    hall: Hall
    pool: Pool
    desk: JobDesk
    source: Path
    sizes: Sizes
    #: of each simulated machine, in cores
    share: float = SHARE
    outputs: list[tuple[str, Comparison]] = field(default_factory=list)

    async def run(self, *, in_pages: bool, shares: Sequence[float | None]) -> Run:
        """One job on workers that have nothing else to do; the clock runs from sending to its result."""
        pages: Any = {"seconds": self.sizes.page_seconds} if in_pages else "never"
        spec = {"source": self.source.as_uri(), "mode": "exact", "pages": pages}
        _say(f"{'in pages' if in_pages else 'in one piece'}, {len(shares)} workers of {shares[0] or 'all'} cores")
        with machines(self.hall, shares):
            began = time.monotonic()
            job_id = await self.desk.submit(QUEUE, spec)
            assert job_id is not None, "this queue refuses nothing"
            while not (job := await self.desk.show(job_id)).status.is_final:  # noqa: ASYNC110 - the end is a row in the database
                await asyncio.sleep(LOOK_SECONDS)
            wall = time.monotonic() - began
        if job.status is not JobStatus.DONE or job.result is None:
            raise SystemExit(f"the job ended as {job.status}: {job.error_code} {job.error_message}")
        found = await self.pool.fetchval("SELECT plan -> 'borders' FROM worker.runs WHERE id = $1", job_id)
        pages_seconds = await self.pool.fetchval(LAST_PAGE, job_id)
        _say(f"{wall:.0f} s")
        return Run(wall, dict(job.result), list(found or ()), float(pages_seconds or 0))


async def measure(ground: Ground, names: Sequence[str]) -> list[Line]:
    lines = []
    if "same-cores" in names:
        lines.append(_same_cores(*await _side_by_side(ground, "same cores", [None], [None, None])))
    if "machines" in names:
        lines.append(await _measure_machines(ground))
    return [*lines, _outputs(ground)] if ground.outputs else lines


async def _measure_machines(ground: Ground) -> Line:
    try:
        apart = await _side_by_side(ground, f"{MACHINES} machines", [ground.share], [ground.share] * MACHINES)
    except NoShares as exc:
        return Line("machines", "Simulated machines", remarks=[f"left out: {exc}"])
    return _machines(ground.share, *apart)


async def _side_by_side(
    ground: Ground, name: str, one: Sequence[float | None], many: Sequence[float | None]
) -> tuple[Run, Run]:
    whole = await ground.run(in_pages=False, shares=one)
    paged = await ground.run(in_pages=True, shares=many)
    _say("comparing what came out")
    decoded = [await asyncio.to_thread(decode, clip_of(run.result)) for run in (whole, paged)]
    texts = (str(whole.result["transcript"]), str(paged.result["transcript"]))
    ground.outputs.append((name, compare(decoded[0], decoded[1], paged.borders[1:-1], texts)))
    return whole, paged


def _same_cores(whole: Run, paged: Run) -> Line:
    cores = os.cpu_count()
    return Line(
        "same-cores",
        f"One long exact job with transcript on the same {cores} cores",
        [_row("in one piece, 1 worker process", whole), _row("in pages, 2 worker processes", paged)],
        [Target("wall of the unsplit job", paged.wall_seconds / whole.wall_seconds, Bound.AT_MOST, 1.1)],
    )


def _machines(share: float, whole: Run, paged: Run) -> Line:
    return Line(
        "machines",
        f"One long exact job with transcript on simulated machines of {share:g} cores each",
        [_row("in one piece, 1 machine", whole), _row(f"in pages, {MACHINES} machines", paged)],
        [Target("faster than on one machine", whole.wall_seconds / paged.wall_seconds, Bound.AT_LEAST, 3.0)],
        ["a machine is a worker process and its children in a cgroup with a quota; database and storage are outside"],
    )


def _outputs(ground: Ground) -> Line:
    line = Line("outputs", "What pages make beside what one piece makes")
    for name, found in ground.outputs:
        line.rows.append(
            {
                "": name,
                "frames apart": found.frames_apart,
                "out of order": found.misnumbered,
                "same times": str(found.is_same_order),
                "samples apart": found.samples_apart,
                "loudest difference at borders": found.loudest_at_borders,
                "anywhere": found.loudest,
                "words": found.words,
                "other words, %": found.words_percent,
            }
        )
    comparisons = [found for _, found in ground.outputs]
    line.targets = [
        Target(
            "frames apart, or out of order", _most(comparisons, "frames_apart", "misnumbered"), Bound.AT_MOST, 0, ""
        ),
        Target("samples apart", _most(comparisons, "samples_apart"), Bound.AT_MOST, 0, ""),
        Target("difference of sound at borders", _most(comparisons, "loudest_at_borders"), Bound.AT_MOST, 0, ""),
        Target("other words", _most(comparisons, "words_percent"), Bound.AT_MOST, 1, "%"),
    ]
    return line


def _most(comparisons: list[Comparison], *names: str) -> float:
    return max(float(getattr(found, name)) for found in comparisons for name in names)


def _row(name: str, run: Run) -> dict[str, Cell]:
    told: dict[str, Cell] = {"": name, "wall s": run.wall_seconds, "frames": run.result["frames"]}
    if run.borders:
        told |= {"pages": run.result["pages"], "until the last page, s": run.pages_seconds}
    return told


async def run(sizes: Sizes, names: Sequence[str], share: float) -> list[Line]:
    with tempfile.TemporaryDirectory(prefix="clipboss-pages-") as folder:
        directory = Path(folder)
        source = await asyncio.to_thread(_make_source, directory, sizes)
        server = EmbeddedPostgres(directory / "postgres", durable=False)
        dsn = await asyncio.to_thread(server.start_blocking)
        try:
            pool = await open_pool(dsn, name="bench", size=2)
            try:
                await install(pool, load_settings())
                desk = JobDesk(pool, await PgBoss.attach(pool))
                ground = Ground(Hall(directory, dsn, source.parent), pool, desk, source, sizes, share)
                return await measure(ground, names)
            finally:
                await pool.close()
        finally:
            await asyncio.to_thread(server.stop_blocking)


def _make_source(directory: Path, sizes: Sizes) -> Path:
    directory.chmod(0o755)  # run by root, the database is somebody else and must get in
    (directory / "media").mkdir()
    _say(f"making {sizes.seconds / 60:g} minutes of source")
    return make_lecture(directory / "media" / "lecture.mp4", seconds=sizes.seconds, size=sizes.size, fps=FPS)


def _say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench pages", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="minutes instead of half an hour, of a shorter source")
    parser.add_argument("--lines", nargs="+", choices=LINES, default=LINES, help="only these questions")
    parser.add_argument(
        "--share", type=float, default=SHARE, help="cores of a simulated machine (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else")
    options = parser.parse_args()
    sizes = QUICK if options.quick else FULL
    lines = asyncio.run(run(sizes, options.lines, options.share))
    facts = {"cores": os.cpu_count(), "seconds": sizes.seconds, "page_seconds": sizes.page_seconds}
    print(json.dumps(as_json(lines, **facts), indent=1) if options.json else as_markdown(lines))


if __name__ == "__main__":
    main()
