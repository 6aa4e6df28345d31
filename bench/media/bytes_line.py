"""What a clip takes from a long remote file, in every way its index can lie in it."""

import asyncio
from pathlib import Path
from typing import Any, Final

import av

from bench.cost import cost_of
from bench.figures import Bound, Line, Target
from bench.media.exactness import examine
from bench.media.ground import Ground
from bench.media.origin import open_origin
from bench.media.ours import OurCutter, open_our_cutter
from bench.media.source import lengthen
from worker.domain.media import ClipRange, Mode
from worker.errors import JobError
from worker.media.boxes import walk_boxes

#: the index at the start waits for the first packets, because without its edit list the timeline would be shifted
FRAGMENTED: Final = "+frag_keyframe+delay_moov+default_base_moof"
LAYOUTS: Final = {
    "index first": "+faststart",
    "index last": "-faststart",
    "fragmented, mfra": FRAGMENTED,
    "fragmented, sidx": f"{FRAGMENTED}+global_sidx+skip_trailer",
}
INDEX_BOXES: Final = frozenset({"moov", "mfra", "sidx"})
#: of the section's own bytes, besides the index
MOST: Final = 1.5


async def measure_bytes(ground: Ground) -> list[Line]:
    sizes = ground.sizes
    line = Line(
        "bytes",
        f"Bytes read for a smart clip of {sizes.short_seconds:g} s from a remote MP4 of {sizes.remote_seconds} s",
        remarks=["the remote file repeats the packets of the source on one timeline"],
    )
    async with open_our_cutter(ground.room("bytes")) as cutter:
        for layout, movflags in LAYOUTS.items():
            row, target = await _measure(ground, cutter, layout, movflags)
            line.rows.append(row)
            line.targets += [target] if target else []
    return [line]


async def _measure(
    ground: Ground, cutter: OurCutter, layout: str, movflags: str
) -> tuple[dict[str, Any], Target | None]:
    """Files are made one at a time and removed: each is more than a gigabyte."""
    path = ground.room("remote") / "remote.mp4"
    ground.tell(f"making a file of {ground.sizes.remote_seconds} s: {layout}")
    remote = await asyncio.to_thread(
        lengthen, ground.source, path, seconds=ground.sizes.remote_seconds, movflags=movflags
    )
    wanted = ground.span(ground.sizes.short_seconds, of=remote)
    section, index = await asyncio.to_thread(_own_bytes, path, wanted)
    row: dict[str, Any] = {"": layout, "section MB": section / 1e6, "index MB": index / 1e6}
    try:
        async with open_origin(path.parent) as origin:
            ground.tell(f"cutting from a file of {remote.seconds:g} s: {layout}")
            clip, cost = await cost_of(cutter.cut(origin.url(path), wanted, mode=Mode.SMART))
            tally = await origin.tally()
        exactness = await asyncio.to_thread(examine, clip.path, remote, wanted)
    except JobError as exc:
        return {**row, "frames off": f"{exc.code}: {exc}"}, None
    finally:
        path.unlink()
    ratio = (tally.sent_bytes - index) / section
    row |= {
        "read MB": tally.sent_bytes / 1e6,
        "requests": tally.requests,
        "CPU s": cost.cpu_seconds,
        "mode": clip.mode,
        "frames off": exactness.frames_off,
    }
    return row, Target(f"{layout}: (read - index) / section", ratio, Bound.AT_MOST, MOST)


def _own_bytes(path: Path, wanted: ClipRange) -> tuple[int, int]:
    """Of the packets shown or heard in the range, and of what tells where they lie."""
    with path.open("rb") as file:
        boxes = walk_boxes(file).boxes
    section = 0
    with av.open(str(path), options={"use_mfra_for": "pts"}) as container:
        container.seek(round(wanted.start_seconds * av.time_base), backward=True)
        for packet in container.demux():
            if packet.pts is None or packet.time_base is None:
                continue
            seconds = float(packet.pts * packet.time_base)
            section += packet.size if wanted.start_seconds <= seconds < wanted.end_seconds else 0
            if seconds > wanted.end_seconds + 2:
                break
    return section, sum(box.size for box in boxes if box.kind in INDEX_BOXES)
