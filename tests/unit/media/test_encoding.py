"""Which encoder makes the pictures, and who steps in."""

import pytest

from worker.domain.media import Quality
from worker.errors import ClipFailed, OutputCorrupt, UpstreamFailure
from worker.media.encoding import CPU, ENCODERS, QUALITIES, VideoEncoder, with_fallback
from worker.media.process import Limits

NVENC = ENCODERS["h264_nvenc"]


async def run(encoder: VideoEncoder, *ends: Exception | None) -> tuple[list[str], str]:
    used = []
    results = iter(ends)

    async def attempt(each: VideoEncoder) -> None:
        used.append(each.name)
        if error := next(results):
            raise error

    _, reason = await with_fallback(encoder, attempt)
    return used, reason


@pytest.mark.parametrize("error", [ClipFailed("no device"), OutputCorrupt("no device")])
async def test_failing_hardware_is_replaced_by_the_processor_once(error):
    assert await run(NVENC, error, None) == (["h264_nvenc", "libx264"], "h264_nvenc: no device")
    with pytest.raises(ClipFailed, match="again"):
        await run(NVENC, error, ClipFailed("again"))


async def test_hardware_that_works_and_errors_that_are_not_its_own_change_nothing():
    assert await run(NVENC, None) == (["h264_nvenc"], "")
    with pytest.raises(UpstreamFailure):
        await run(NVENC, UpstreamFailure("broke off"))


async def test_processor_has_nobody_behind_it():
    with pytest.raises(ClipFailed):
        await run(CPU, ClipFailed("bad"))


def test_better_quality_is_a_lower_factor_for_every_encoder():
    for encoder in ENCODERS.values():
        options = [str(encoder.arguments(QUALITIES[quality])) for quality in Quality]
        assert len(set(options)) == len(Quality), encoder.name


def test_drivers_may_reserve_more_address_space_than_there_is():
    limits = Limits(10, memory_bytes=1000, cpu_seconds=5, file_bytes=7)
    assert CPU.limits(limits) == limits
    assert NVENC.limits(limits) == Limits(10, file_bytes=7)
