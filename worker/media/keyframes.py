"""Where in a source a picture begins: asked of its packets, without decoding them."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import av
from av.container import InputContainer
from av.packet import Packet

from worker.domain.media import Probe
from worker.errors import ClipFailed
from worker.media.probe import open_source
from worker.media.source import ReadableSource
from worker.media.timeline import MARGIN_SECONDS

#: containers without an index (MPEG-TS) land in the middle of a group of pictures, so the search goes back further
BACK_SECONDS: Final = (0.0, 4.0, 16.0, 64.0, float("inf"))
#: a seek to the very start may land behind the first keyframe, because that is decoded before it is shown
BEFORE_ALL_SECONDS: Final = -1.0


async def keyframe_before(source: ReadableSource, probe: Probe, seconds: float) -> float:
    """When the last keyframe at or before `seconds` is shown; without a picture, when that packet sounds."""
    found = await asyncio.to_thread(_last_before, source, probe, seconds, keyframes_only=True)
    if found is None:
        raise ClipFailed(f"{source.label} has no keyframe to start a copy at {seconds:.3f} s: use mode exact")
    return found


async def frame_shown_at(source: ReadableSource, probe: Probe, seconds: float) -> float | None:
    """When the frame that is on display at `seconds` was put there; None before the first."""
    return await asyncio.to_thread(_last_before, source, probe, seconds, keyframes_only=False)


def _last_before(source: ReadableSource, probe: Probe, seconds: float, *, keyframes_only: bool) -> float | None:
    with open_source(source) as container:
        for back in BACK_SECONDS:
            times = [
                shown
                for shown, is_keyframe in _packets(container, probe, max(BEFORE_ALL_SECONDS, seconds - back), seconds)
                if is_keyframe or not keyframes_only
            ]
            if times:
                return max(times)
    return None


def _packets(
    container: InputContainer, probe: Probe, seek_seconds: float, until_seconds: float
) -> Iterator[tuple[float, bool]]:
    """The packets shown up to `until_seconds`, each with whether it is a keyframe."""
    wanted = probe.video or probe.audio
    assert wanted is not None, "a probed source has picture or sound"
    container.seek(round((seek_seconds + probe.start_seconds) * av.time_base), backward=True)
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
