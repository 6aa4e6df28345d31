"""Exact clips of a remote source: ours, a re-encode over the URL, and the smartcut package."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from bench.cost import Cost, PeerFailed, cost_of, run_command
from bench.figures import Bound, Cell, Line, Target
from bench.media.exactness import Exactness, examine
from bench.media.ground import Ground, Sizes
from bench.media.origin import Origin, open_origin
from bench.media.ours import OurCutter, open_our_cutter
from bench.media.peers import smartcut_argv, veryfast_argv
from bench.media.source import NumberedSource, lengthen
from worker.domain.media import ClipFile, ClipRange, Mode

OURS, VERYFAST, SMARTCUT = "clipboss smart", "ffmpeg veryfast", "smartcut"
Cutting = Callable[[], Coroutine[Any, Any, Path]]

#: bytes that a closing connection still counts arrive within this
SETTLE_SECONDS = 0.3


async def measure_smart(ground: Ground) -> list[Line]:
    return await _measure(ground, ground.sizes.short_seconds, ground.sizes.places)


async def measure_smart_long(ground: Ground) -> list[Line]:
    return await _measure(ground, ground.sizes.long_seconds)


async def _measure(ground: Ground, seconds: float, places: tuple[float, ...] = (0.5,)) -> list[Line]:
    directory = ground.room("smart")
    talk = await asyncio.to_thread(
        lengthen, ground.source, directory / "talk.mp4", seconds=ground.sizes.talk_seconds, movflags="+faststart"
    )
    async with open_origin(directory) as origin, open_our_cutter(directory) as cutter:
        return [await _Race(ground, talk, origin, cutter).run(seconds, places=places)]


@dataclass(frozen=True, slots=True)
class _Result:
    """Of one contender, over all places."""

    costs: list[Cost] = field(default_factory=list)
    read_bytes: list[int] = field(default_factory=list)
    written_bytes: list[int] = field(default_factory=list)
    found: list[Exactness] = field(default_factory=list)

    @property
    def cpu_seconds(self) -> float:
        return mean(cost.cpu_seconds for cost in self.costs)

    @property
    def sync_ms(self) -> float | None:
        """The worst; None when the sound was not found again somewhere."""
        lags = [one.sync_ms for one in self.found if one.sync_ms is not None]
        return max(lags, key=abs) if len(lags) == len(self.found) else None


class _Race:
    """Each place is cut by all contenders before the next one, so that what else the machine does meets all."""

    def __init__(self, ground: Ground, talk: NumberedSource, origin: Origin, cutter: OurCutter) -> None:
        self._ground = ground
        self._talk = talk
        self._origin = origin
        self._cutter = cutter
        self._results: dict[str, _Result] = {}
        self._remarks: list[str] = []
        self._clips: list[ClipFile] = []

    async def run(self, seconds: float, *, places: Sequence[float]) -> Line:
        if self._ground.smartcut is None:
            self._remarks.append("smartcut is not installed and was not measured")
        for place in places:
            wanted = self._ground.span(seconds, of=self._talk, place=place)
            for who, cutting in self._contenders(wanted).items():
                self._ground.tell(f"cutting {seconds:g} s at {wanted.start_seconds:g} s: {who}")
                try:
                    await self._measure(who, cutting, wanted)
                except PeerFailed as exc:
                    self._remarks.append(f"{who} failed: {exc}")
        return Line(
            f"smart-{seconds:g}",
            f"Exact clip of {seconds:g} s from a remote MP4 of {self._talk.seconds:g} s",
            [_row(who, result) for who, result in self._results.items()],
            _targets(self._results, seconds),
            [*self._remarks, *self._explanations()],
        )

    def _contenders(self, wanted: ClipRange) -> dict[str, Cutting]:
        url, ffmpeg = self._origin.url(self._talk.path), self._ground.ffmpeg
        encoded, smart = (self._talk.path.with_suffix(f".{peer}.mp4") for peer in ("veryfast", "smartcut"))
        contenders: dict[str, Cutting] = {
            OURS: partial(self._ours, url, wanted),
            VERYFAST: partial(self._peer, veryfast_argv(ffmpeg, url, wanted, encoded), encoded),
        }
        if self._ground.smartcut is not None:
            command = smartcut_argv(self._ground.smartcut, url, wanted, smart)
            contenders[SMARTCUT] = partial(self._peer, command, smart)
        return contenders

    async def _ours(self, url: str, wanted: ClipRange) -> Path:
        clip = await self._cutter.cut(url, wanted, mode=Mode.SMART)
        self._clips.append(clip)
        return clip.path

    async def _peer(self, argv: list[str], output: Path) -> Path:
        await run_command(argv)
        return output

    async def _measure(self, who: str, cutting: Cutting, wanted: ClipRange) -> None:
        await self._origin.tally()
        path, cost = await cost_of(cutting())
        await asyncio.sleep(SETTLE_SECONDS)
        tally = await self._origin.tally()
        exactness = await asyncio.to_thread(examine, path, self._talk, wanted)
        result = self._results.setdefault(who, _Result())
        result.costs.append(cost)
        result.read_bytes.append(tally.sent_bytes)
        result.written_bytes.append(path.stat().st_size)
        result.found.append(exactness)

    def _explanations(self) -> list[str]:
        reencoded = sum(clip.frames_reencoded for clip in self._clips)
        own = mean(cost.own_cpu_seconds for cost in self._results[OURS].costs)
        return [
            f"means of {len(self._clips)} places, exactness and sync of the worst",
            f"smart re-encoded {reencoded} of {sum(clip.frames for clip in self._clips)} frames",
            f"{own:.2f} of its CPU seconds are the worker's own (gateway, verification), the rest its children's",
            *(f"smart fell back to exact: {clip.fallback}" for clip in self._clips if clip.fallback),
        ]


def _row(who: str, result: _Result) -> dict[str, Cell]:
    return {
        "": who,
        "CPU s": result.cpu_seconds,
        "wall s": mean(cost.wall_seconds for cost in result.costs),
        "MB read": mean(result.read_bytes) / 1e6,
        "MB written": mean(result.written_bytes) / 1e6,
        "first frame off": max((one.first_off for one in result.found), key=abs),
        "last frame off": max((one.last_off for one in result.found), key=abs),
        "breaks": sum(one.breaks for one in result.found),
        "sync ms": result.sync_ms,
    }


def _targets(results: dict[str, _Result], seconds: float) -> list[Target]:
    ours = results[OURS]
    sync = ours.sync_ms
    targets = [
        Target("frames off", sum(one.frames_off for one in ours.found), Bound.AT_MOST, 0, "frames"),
        Target("sound against picture", float("inf") if sync is None else abs(sync), Bound.AT_MOST, 1, "ms"),
    ]
    # other lengths have no target of their own
    least = {Sizes().short_seconds: 4, Sizes().long_seconds: 30}.get(seconds)
    if VERYFAST in results and least is not None:
        ratio = results[VERYFAST].cpu_seconds / ours.cpu_seconds
        targets.append(Target("less CPU than veryfast", ratio, Bound.AT_LEAST, least))
    if (peer := results.get(SMARTCUT)) is not None:
        read = sum(ours.read_bytes) / sum(peer.read_bytes)
        targets.append(Target("CPU of smartcut", ours.cpu_seconds / peer.cpu_seconds, Bound.AT_MOST, 0.5))
        targets.append(Target("bytes that smartcut reads", read, Bound.AT_MOST, 0.2))
    return targets
