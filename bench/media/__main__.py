"""`./dev bench media`: the clip engine beside its peers. It measures and compares; it never fails a build."""

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench.figures import Line, as_json, as_markdown
from bench.media.bytes_line import measure_bytes
from bench.media.crowd_line import measure_crowd
from bench.media.ground import QUICK, Ground, Sizes
from bench.media.peers import ensure_smartcut
from bench.media.smart_line import measure_smart, measure_smart_long
from bench.media.source import Recipe, ensure_source
from bench.media.throttle_line import measure_throttled
from bench.media.worker_line import measure_worker
from worker.media.ffmpeg import ffmpeg_version, find_ffmpeg

LINES: Final[dict[str, Callable[[Ground], Awaitable[list[Line]]]]] = {
    "smart": measure_smart,
    "smart-long": measure_smart_long,
    "worker": measure_worker,
    "bytes": measure_bytes,
    "throttled": measure_throttled,
    "crowd": measure_crowd,
}


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench media", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter clips of a shorter source: a few minutes")
    parser.add_argument("--lines", default=",".join(LINES), help=f"comma-separated, of {', '.join(LINES)}")
    parser.add_argument("--minutes", type=float, help="length of the source (2), which longer files repeat")
    parser.add_argument("--size", default="1280x720", help="of the source's picture")
    parser.add_argument("--seed", type=int, default=7, help="the same seed makes the same source")
    parser.add_argument("--talk-minutes", type=float, help="length of the file that smart clips are cut from (42; 10)")
    parser.add_argument("--remote-minutes", type=float, help="length of the file whose bytes are counted (60; 15)")
    parser.add_argument("--rounds", type=int, help="how often the worker and the bare command take turns (3; 2)")
    parser.add_argument("--cache", type=Path, default=Path("scratch/bench"), help="where sources are kept")
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else")
    options = parser.parse_args(argv)
    options.wanted = [name.strip() for name in options.lines.split(",")]
    if unknown := set(options.wanted) - set(LINES):
        parser.error(f"no such line: {', '.join(sorted(unknown))}; there are {', '.join(LINES)}")
    try:
        width, height = map(int, options.size.split("x"))
        options.picture = (width, height)
    except ValueError:
        parser.error(f"--size is {options.size!r}: write it as 1280x720")
    options.sizes = _sizes(options)
    if options.sizes.source_seconds < options.sizes.short_seconds + 2 or options.sizes.source_seconds % 8:
        parser.error(f"--minutes gives {options.sizes.source_seconds} s: at least 32 and a multiple of 8 are needed")
    return options


def _sizes(options: argparse.Namespace) -> Sizes:
    sizes = QUICK if options.quick else Sizes()
    return replace(
        sizes,
        source_seconds=round(options.minutes * 60) if options.minutes else sizes.source_seconds,
        talk_seconds=round(options.talk_minutes * 60) if options.talk_minutes else sizes.talk_seconds,
        remote_seconds=round(options.remote_minutes * 60) if options.remote_minutes else sizes.remote_seconds,
        rounds=options.rounds or sizes.rounds,
    )


async def run(options: argparse.Namespace) -> list[Line]:
    sizes, cache = options.sizes, options.cache.absolute()
    recipe = Recipe(sizes.source_seconds, options.picture, seed=options.seed)
    source = await asyncio.to_thread(ensure_source, recipe, cache, _tell)
    smartcut = await ensure_smartcut(cache, _tell) if {"smart", "smart-long"} & set(options.wanted) else None
    directory = _open_directory(cache)
    ground = Ground(sizes, find_ffmpeg(None), source, directory, smartcut, _tell)
    lines = list[Line]()
    try:
        for name in options.wanted:
            found = await LINES[name](ground)
            lines += found
            # what was measured is not lost with what comes after it
            if not options.json:
                print(as_markdown(found), flush=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return lines


def _open_directory(cache: Path) -> Path:
    directory = Path(tempfile.mkdtemp(prefix="run-", dir=cache))
    # run by root, the embedded PostgreSQL is somebody else and must get in
    directory.chmod(0o755)
    return directory


def _tell(text: str) -> None:
    """Progress goes where it does not disturb what is printed."""
    clock = time.strftime("%H:%M:%S")
    print(f"{clock} {text} (load {os.getloadavg()[0]:.1f})", file=sys.stderr)


def main() -> None:
    options = parse()
    lines = asyncio.run(run(options))
    if options.json:
        facts = {"cores": os.cpu_count(), "ffmpeg": asyncio.run(ffmpeg_version(find_ffmpeg(None)))}
        print(json.dumps(as_json(lines, **facts, seed=options.seed), indent=1))


if __name__ == "__main__":
    main()
