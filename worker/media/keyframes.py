"""Where in a source a picture begins: asked of its packets, without decoding them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import av
from av.container import InputContainer
from av.packet import Packet

from worker.domain.media import Probe
from worker.errors import ClipFailed
from worker.media.look import open_source
from worker.media.source import ReadableSource
from worker.media.timeline import MARGIN_SECONDS

#: containers without an index (MPEG-TS) land in the middle of a group of pictures, so the search goes back further
BACK_SECONDS: Final = (0.0, 4.0, 16.0, 64.0)


async def keyframe_before(source: ReadableSource, probe: Probe, seconds: float) -> float:
    """When the last keyframe at or before `seconds` is shown; without a picture, when that packet sounds."""
    wanted = probe.video or probe.audio
    if wanted is not None and seconds < wanted.start_seconds:
        # nothing comes before it that a copy could hide
        return seconds
    found = await asyncio.to_thread(_last_before, source, probe, seconds, keyframes_only=True)
    if found is None:
        raise ClipFailed(f"{source.label} has no keyframe to start a copy at {seconds:.3f} s: use mode exact")
    return found


async def frame_shown_at(source: ReadableSource, probe: Probe, seconds: float) -> float | None:
    """When the frame that is on display at `seconds` was put there; None before the first."""
    return await asyncio.to_thread(_last_before, source, probe, seconds, keyframes_only=False)


def picture_of(clip: Path, seconds: float) -> float:
    """When the picture came up that a finished clip of ours shows at `seconds`."""
    with av.open(f"file:{clip}", options={"protocol_whitelist": "file", "format_whitelist": "mov"}) as container:
        stream = container.streams.video[0]
        container.seek(round(seconds * av.time_base), backward=True)
        times = list[float]()
        for packet in container.demux(stream):
            if packet.pts is None or packet.dts is None or packet.is_discard:
                continue
            if times and float(packet.dts * packet.time_base) > seconds + MARGIN_SECONDS:
                break
            times.append(float(packet.pts * packet.time_base))
    # before the first picture, that one
    return max((time for time in times if time <= seconds + MARGIN_SECONDS), default=min(times, default=0.0))


def _last_before(source: ReadableSource, probe: Probe, seconds: float, *, keyframes_only: bool) -> float | None:
    def shown_times(container: InputContainer) -> list[float]:
        packets = _packets(container, probe, seconds)
        return [shown for shown, is_keyframe in packets if is_keyframe or not keyframes_only]

    if targets := [seconds - back for back in BACK_SECONDS if seconds > back]:
        with open_source(source) as container:
            for target in targets:
                container.seek(round((target + probe.start_seconds) * av.time_base), backward=True)
                if times := shown_times(container):
                    return max(times)
    # a fresh reader stands at the beginning; a seek there may land behind the first keyframe, or fail
    with open_source(source) as container:
        return max(shown_times(container), default=None)


def _packets(container: InputContainer, probe: Probe, until_seconds: float) -> Iterator[tuple[float, bool]]:
    """The packets from here on that are shown up to `until_seconds`, each with whether it is a keyframe."""
    wanted = probe.video or probe.audio
    assert wanted is not None, "a probed source has picture or sound"
    for packet in container.demux(container.streams[wanted.index or 0]):
        if packet.pts is None or packet.dts is None:
            continue
        # decode times grow steadily, display times do not
        if _seconds(packet, packet.dts, probe) > until_seconds + MARGIN_SECONDS:
            return
        shown = _seconds(packet, packet.pts, probe)
        if shown <= until_seconds + MARGIN_SECONDS:
            yield max(0.0, shown), packet.is_keyframe


def _seconds(packet: "Packet[Any]", timestamp: int, probe: Probe) -> float:
    return float(timestamp * packet.time_base) - probe.start_seconds
