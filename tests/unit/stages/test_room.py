"""How much disk a job asks for."""

from typing import Any

import pytest

from worker.domain.media import AudioStream, ClipRange, Probe, VideoStream
from worker.domain.request import parse_request
from worker.errors import SourceTooLarge
from worker.stages.room import SMALL_FILES_BYTES, Bounds, bytes_needed, refuse_too_much

PROBE = Probe("mov", 1000.0, 0.0, VideoStream("h264", 1280, 720, 25.0), AudioStream("aac", 48_000, 2))
#: 1 MB a second
SIZE = 1_000_000_000


def need(probe: Probe = PROBE, seconds: float = 100.0, size: int = SIZE, **wishes: Any) -> int:
    request = parse_request({"source": "x", **wishes})
    return bytes_needed(request, probe, ClipRange(0, seconds), source_bytes=size) - SMALL_FILES_BYTES


def test_copy_takes_what_the_source_has_and_a_group_more():
    assert 100e6 < need(mode="copy") < 130e6


@pytest.mark.parametrize("mode", ["smart", "exact"])
def test_encoded_clip_takes_no_more_than_half_as_much_again(mode):
    assert 80e6 < need(mode=mode) < 160e6
    assert need(mode=mode, size=SIZE // 10) < 30e6


def test_source_of_unknown_size_is_judged_by_its_pixels():
    assert 50e6 < need(mode="exact", size=0) < 200e6


def test_sound_alone_takes_little():
    assert need(mode="audio") < 6e6
    assert need(Probe("mp3", 1000.0, 0.0, None, PROBE.audio)) < 6e6


def test_all_that_is_wanted_counts():
    plain = need()
    assert need(renditions=[360]) > plain + 10e6
    assert need(renditions=[720, 360]) > need(renditions=[360])
    assert need(loudness=-16) > plain * 2
    assert need(mode="exact", max_height=360) < need(mode="exact")


def test_files_that_may_not_grow_need_no_more_room():
    request = parse_request({"source": "x", "renditions": [360]})
    bounds = Bounds(file_bytes=10_000_000)
    assert bytes_needed(request, PROBE, ClipRange(0, 900), source_bytes=SIZE, bounds=bounds) == 30_000_000


def test_range_that_cannot_be_read_within_the_limit_is_refused_at_once():
    bounds = Bounds(read_bytes=100 * 2**20)
    refuse_too_much(PROBE, ClipRange(0, 200), source_bytes=SIZE, bounds=bounds)
    with pytest.raises(SourceTooLarge, match="SOURCE_MAX_MB allows 100"):
        refuse_too_much(PROBE, ClipRange(0, 400), source_bytes=SIZE, bounds=bounds)
    refuse_too_much(PROBE, ClipRange(0, 400), source_bytes=SIZE, bounds=Bounds())
