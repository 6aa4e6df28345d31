"""A copied clip from an origin that is slow on every single connection: ours beside ffmpeg reading it directly."""

import asyncio

from bench.cost import cost_of, run_command
from bench.figures import Bound, Line, Target
from bench.media.ground import Ground
from bench.media.origin import open_origin
from bench.media.ours import open_our_cutter
from bench.media.peers import copy_argv
from bench.media.source import lengthen
from worker.domain.media import Mode


async def measure_throttled(ground: Ground) -> list[Line]:
    directory, sizes = ground.room("throttled"), ground.sizes
    talk = await asyncio.to_thread(
        lengthen, ground.source, directory / "talk.mp4", seconds=sizes.talk_seconds, movflags="+faststart"
    )
    wanted = ground.span(sizes.long_seconds, of=talk)
    async with (
        open_origin(directory, mbit_per_connection=sizes.origin_mbit) as origin,
        open_our_cutter(directory) as cutter,
    ):
        url = origin.url(talk.path)
        ground.tell(f"copying {sizes.long_seconds:g} s from a slow origin: ours")
        await origin.tally()
        _, ours = await cost_of(cutter.cut(url, wanted, mode=Mode.COPY))
        ours_read = await origin.tally()
        ground.tell(f"copying {sizes.long_seconds:g} s from a slow origin: ffmpeg")
        _, direct = await cost_of(run_command(copy_argv(ground.ffmpeg, url, wanted, directory / "direct.mp4")))
        direct_read = await origin.tally()
    return [
        Line(
            "throttled",
            f"Copied clip of {sizes.long_seconds:g} s, origin throttled to {sizes.origin_mbit:g} Mbit/s a connection",
            [
                {
                    "": who,
                    "wall s": cost.wall_seconds,
                    "CPU s": cost.cpu_seconds,
                    "MB read": read.sent_bytes / 1e6,
                    "requests": read.requests,
                }
                for who, cost, read in (
                    ("clipboss copy", ours, ours_read),
                    ("ffmpeg copy, directly", direct, direct_read),
                )
            ],
            [Target("faster than ffmpeg", direct.wall_seconds / ours.wall_seconds, Bound.AT_LEAST, 4)],
        )
    ]
