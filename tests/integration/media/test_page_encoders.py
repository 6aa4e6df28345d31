"""Pages that different encoders made, in one file."""

import asyncio
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from tests.integration.media.watching import complaints, watch, watch_by_another
from worker.domain.media import ClipRange, Quality
from worker.errors import OutputCorrupt
from worker.media.encoding import CPU, VideoEncoder
from worker.media.frame_code import read_frame_number
from worker.media.join_order import JoinedPage, JoinOrder, join_argv, joined
from worker.media.joining import PageJoiner
from worker.media.pages import PageCutter
from worker.media.probe import probe
from worker.media.process import Limits, run_child

LIMITS = Limits(wall_seconds=30, stall_seconds=15)
CLIP = ClipRange(0.5, 3.5)
BORDERS = (0.5, 1.35, 2.2, 2.8, 3.5)
#: frames of the sample that pages begin with
FIRST_FRAMES = (15, 41, 66, 84)
PLAIN = VideoEncoder(CPU.name, lambda _: {"preset": "ultrafast", "crf": 30, "bf": 0, "refs": 1, "g": 12})
DEEP = VideoEncoder(CPU.name, lambda _: {"preset": "veryfast", "bf": 7, "refs": 5, "aud": 1})
#: tells another level, but holds as many frames back
LEVELLED = VideoEncoder(CPU.name, lambda encoding: {**CPU.options(encoding), "level": "4.2", "crf": 30})
OTHER = VideoEncoder("libopenh264", lambda _: {"b:v": "300k"})


@pytest.fixture
def cut(ffmpeg_path, tmp_path, sample):
    async def cut(*encoders: VideoEncoder, heights=(None,)):
        source = sample(seconds=4, gop=25)
        probed = await probe(source)
        return probed, [
            await PageCutter(ffmpeg_path, limits=LIMITS, encoder=encoders[number % len(encoders)]).cut_pictures(
                source,
                probed,
                CLIP,
                ClipRange(*ends),
                work_path=tmp_path / f"page-{number}.mp4",
                max_height=heights[number % len(heights)],
                quality=Quality.GOOD,
            )
            for number, ends in enumerate(pairwise(BORDERS))
        ]

    return cut


def keyframe_numbers(path: Path) -> list[int | None]:
    """What a decoder shows that starts anew at each keyframe."""
    with av.open(str(path)) as container:
        times = [packet.pts for packet in container.demux(video=0) if packet.is_keyframe and packet.size]
    found = []
    for time in times:
        with av.open(str(path)) as container:
            container.seek(time, stream=container.streams.video[0])
            found.append(read_frame_number(next(container.decode(video=0)).to_ndarray(format="gray")))
    return found


@pytest.mark.parametrize(
    "encoders",
    [(CPU, LEVELLED), (CPU, PLAIN), (DEEP, PLAIN, CPU), (OTHER, CPU)],
    ids=["levels", "depths", "three", "makers"],
)
async def test_pages_of_different_encoders_decode_clean(cut, ffmpeg_path, tmp_path, encoders):
    probed, pages = await cut(*encoders)
    path = tmp_path / "joined.mp4"
    clip = await PageJoiner(limits=LIMITS).join(pages, None, probe=probed, clip=CLIP, work_path=path)
    assert not any(page.cpu_fallback for page in pages)
    assert (clip.frames, clip.frames_reencoded) == (90, 90)
    assert watch(path, is_clip=True).numbers == list(range(15, 105))
    assert complaints(ffmpeg_path, path) == ""
    if encoders == (CPU, LEVELLED):
        # openh264 drops what it still holds where the depth of reordering changes
        assert watch_by_another(ffmpeg_path, path) == list(range(15, 105))
    found = keyframe_numbers(path)
    assert set(FIRST_FRAMES) <= set(found)
    assert found == sorted(found)


async def test_decoder_goes_back_to_a_page_of_another_encoder(cut, tmp_path):
    probed, pages = await cut(CPU, PLAIN)
    path = tmp_path / "joined.mp4"
    await PageJoiner(limits=LIMITS).join(pages, None, probe=probed, clip=CLIP, work_path=path)
    with av.open(str(path)) as container:
        for seconds, number in ((0.9, 41), (0.0, 15), (2.4, 84), (0.0, 15)):
            container.seek(round(seconds * av.time_base))
            frame = next(container.decode(video=0))
            assert read_frame_number(np.asarray(frame.to_ndarray(format="gray"))) == number


@pytest.mark.parametrize(("encoders", "is_mixed"), [((CPU,), False), ((CPU, PLAIN), True)], ids=["alike", "mixed"])
async def test_sets_are_told_before_each_keyframe_but_only_where_pages_differ(cut, tmp_path, encoders, is_mixed):
    _, pages = await cut(*encoders)
    files = [JoinedPage(str(page.path), page.zero_ticks) for page in pages]
    order = JoinOrder(f"file:{tmp_path}/joined.mp4", files, None, clip_ticks=360_000)
    command = await asyncio.to_thread(join_argv, order, tmp_path / "order.json")
    told = joined(await run_child(command, limits=LIMITS), LIMITS, "joined.mp4")
    assert (told.frames, told.first_ticks, told.past_ticks) == (90, 0, 360_000)
    assert told.sets_told == len(keyframe_numbers(tmp_path / "joined.mp4")) * is_mixed


async def test_pages_of_different_sizes_are_no_clip(cut, tmp_path):
    probed, pages = await cut(CPU, heights=(None, 90))
    with pytest.raises(OutputCorrupt, match="page 1 is 160 x 90 instead of 320 x 180"):
        await PageJoiner(limits=LIMITS).join(pages, None, probe=probed, clip=CLIP, work_path=tmp_path / "joined.mp4")
