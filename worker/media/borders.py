"""What a source holds on both sides of a moment: asked of its packets, so that pages neither lose nor invent any."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any, Final

import av
from av.container import InputContainer
from av.packet import Packet

from worker.domain.media import Probe
from worker.media.look import open_source
from worker.media.source import ReadableSource
from worker.media.timeline import TICKS_PER_SECOND

#: how far before the moment reading starts; containers without an index may land late (MPEG-TS)
BACK_SECONDS: Final = (0.5, 4.0, 16.0, 64.0)
#: sound and picture of one moment lie no further apart than this in a file
INTERLEAVING_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Border:
    """Seconds on the container's timeline; of one track, but for `reached_seconds`."""

    #: when the last packet before it is shown; None: there is none, or packets do not tell
    before_seconds: float | None = None
    #: when the first one at or behind it is shown; None: there is none near
    behind_seconds: float | None = None
    #: how far anything at all was found to go on
    reached_seconds: float = 0.0


async def look_around(
    source: ReadableSource, probe: Probe, ticks: Sequence[int], *, of_sound: bool = False
) -> list[Border]:
    """One for each moment. What broke off while looking proves nothing, and is raised."""
    found = await asyncio.to_thread(_look, source, probe, ticks, "audio" if of_sound else "video")
    if failure := source.failure():
        raise failure
    return found


def tick_of(seconds: float | Fraction) -> int:
    """Rounded as ffmpeg does it."""
    return floor(seconds * TICKS_PER_SECOND + Fraction(1, 2))


def _look(source: ReadableSource, probe: Probe, ticks: Sequence[int], kind: str) -> list[Border]:
    with open_source(source) as container:
        found = [_sought(container, probe, tick, kind) for tick in ticks]
    for at, border in enumerate(found):
        if border.before_seconds is None:
            # a fresh reader stands at the beginning; a seek there may land behind the first packets, or fail
            with open_source(source) as container:
                found[at] = _read(container, probe, ticks[at], kind)
    return found


def _sought(container: InputContainer, probe: Probe, tick: int, kind: str) -> Border:
    moment = tick / TICKS_PER_SECOND
    for back in BACK_SECONDS:
        if moment <= back:
            break
        container.seek(round((moment - back + probe.start_seconds) * av.time_base), backward=True)
        border = _read(container, probe, tick, kind)
        if border.before_seconds is not None:
            return border
    return Border()


def _read(container: InputContainer, probe: Probe, tick: int, kind: str) -> Border:
    before, behind, reached = list[float](), list[float](), 0.0
    for stored, shown, lasting, is_of_kind in _packets(container, probe, kind):
        if shown is not None:
            reached = max(reached, shown + lasting)
            if is_of_kind:
                (behind if tick_of(shown) >= tick else before).append(shown)
        # decode times grow steadily, display times do not
        if (behind and is_of_kind and stored >= min(behind)) or (
            stored > tick / TICKS_PER_SECOND + INTERLEAVING_SECONDS
        ):
            break
    return Border(max(before, default=None), min(behind, default=None), reached)


def _packets(container: InputContainer, probe: Probe, kind: str) -> Iterator[tuple[float, float | None, float, bool]]:
    """When each packet is stored, shown, for how long, and whether it is of the kind that is asked for."""
    indices = {name: stream.index or 0 for name, stream in (("video", probe.video), ("audio", probe.audio)) if stream}
    streams: list[Any] = [container.streams[index] for index in indices.values()]
    for packet in container.demux(streams):
        if packet.dts is None or packet.is_discard:
            continue
        shown = None if packet.pts is None else _seconds(packet, packet.pts, probe)
        lasting = float((packet.duration or 0) * packet.time_base)
        yield _seconds(packet, packet.dts, probe), shown, lasting, packet.stream_index == indices[kind]


def _seconds(packet: "Packet[Any]", timestamp: int, probe: Probe) -> float:
    return float(timestamp * packet.time_base) - probe.start_seconds
