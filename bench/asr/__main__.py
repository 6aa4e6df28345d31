"""`./dev bench asr`: our transcripts beside the bare engine's: words, time, memory. It never fails a build."""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bench.asr.corpus import Recording, make_corpus
from bench.asr.words import Score, score
from bench.figures import Bound, Line, Target, as_json, as_markdown
from worker.asr import AsrOptions, open_recognizer
from worker.domain.transcript import Transcript

OURS = "clipboss"
BARE = {"moonshine, its own voice detection": "default", "moonshine, none": "0.0"}


@dataclass(frozen=True, slots=True)
class Hearing:
    """What a contender made of one recording."""

    text: str
    cpu_seconds: float
    wall_seconds: float


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    hearings: Sequence[Hearing]
    peak_bytes: int


async def listen_bare(name: str, threshold: str, corpus: Sequence[Recording]) -> Result:
    paths = [str(recording.wav) for recording in corpus]
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.asr.bare", threshold, *paths, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await child.communicate()
    found = json.loads(printed)
    hearings = [Hearing(each["text"], each["cpu"], each["wall"]) for each in found["heard"]]
    return Result(name, hearings, found["peak_bytes"])


async def listen(corpus: Sequence[Recording]) -> Result:
    recognizer = open_recognizer(AsrOptions())
    assert recognizer is not None, "moonshine is an engine"
    try:
        # a warm worker is what jobs meet
        await recognizer.transcribe(corpus[-1].wav, language=None)
        assert recognizer.pid is not None, "it has just answered"
        process = psutil.Process(recognizer.pid)
        hearings, peak = [], 0
        for recording in corpus:
            cpu, wall = _cpu(process), time.monotonic()
            transcript: Transcript = await recognizer.transcribe(recording.wav, language=None)
            hearings.append(Hearing(transcript.text, _cpu(process) - cpu, time.monotonic() - wall))
            peak = max(peak, _peak_bytes(process))
    finally:
        await recognizer.close()
    return Result(OURS, hearings, peak)


def compare(corpus: Sequence[Recording], results: Sequence[Result]) -> list[Line]:
    lines = []
    for is_human, title in ((True, "Human recordings"), (False, "Synthetic speech")):
        numbers = [number for number, each in enumerate(corpus) if each.is_human is is_human]
        line = Line("human" if is_human else "synthetic", f"{title}: words wrong, missing or too many")
        scores = {}
        for result in results:
            each = {corpus[n].name: score(corpus[n].text, result.hearings[n].text) for n in numbers}
            total = sum(each.values(), Score(0, 0))
            scores[result.name] = total
            seconds = sum(corpus[n].seconds for n in numbers)
            line.rows.append(
                {
                    "": result.name,
                    **{f"{name}, %": round(found.percent, 1) for name, found in each.items()},
                    "all, %": round(total.percent, 1),
                    "CPU s / s": sum(result.hearings[n].cpu_seconds for n in numbers) / seconds,
                    "wall s / s": sum(result.hearings[n].wall_seconds for n in numbers) / seconds,
                    "peak MB": round(result.peak_bytes / 2**20),
                }
            )
        for name in BARE:
            line.targets.append(
                Target(f"words beside {name}", scores[OURS].percent, Bound.AT_MOST, scores[name].percent, "%")
            )
        line.remarks.append(f"{sum(corpus[n].seconds for n in numbers):.0f} s of sound, {scores[OURS].words} words")
        lines.append(line)
    return lines


async def run(show: Any) -> list[Line]:
    with tempfile.TemporaryDirectory(prefix="clipboss-asr-") as folder:
        corpus = await asyncio.to_thread(make_corpus, Path(folder))
        results = [await listen(corpus)]
        for name, threshold in BARE.items():
            results.append(await listen_bare(name, threshold, corpus))
        if show:
            _show_texts(corpus, results)
        return compare(corpus, results)


def _show_texts(corpus: Sequence[Recording], results: Sequence[Result]) -> None:
    for number, recording in enumerate(corpus):
        print(f"{recording.name}\n  said: {' '.join(recording.text.split())}", file=sys.stderr)
        for result in results:
            print(f"  {result.name}: {result.hearings[number].text}", file=sys.stderr)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _peak_bytes(process: psutil.Process) -> int:
    if sys.platform != "linux":
        return int(process.memory_info().rss)
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench asr", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else")
    parser.add_argument("--texts", action="store_true", help="show what each one heard")
    options = parser.parse_args()
    lines = asyncio.run(run(options.texts))
    print(json.dumps(as_json(lines, cores=os.cpu_count()), indent=1) if options.json else as_markdown(lines))


if __name__ == "__main__":
    main()
