from collections.abc import Callable
from dataclasses import replace

import av
import pytest

from worker.errors import OutputCorrupt
from worker.media.boxes import walk_boxes
from worker.media.verify import ExpectedClip, verify_clip

EXPECTED = ExpectedClip(has_video=True, has_audio=True, shortest_seconds=5.95, longest_seconds=6.05)


@pytest.fixture
def damaged(sample, tmp_path) -> Callable[..., object]:
    """A copy of a whole clip with something done to its bytes."""

    def make(change: Callable[[bytearray], bytes | bytearray]):
        path = tmp_path / "clip.mp4"
        path.write_bytes(change(bytearray(sample().path.read_bytes())))
        return path

    return make


def mdat(content: bytearray) -> int:
    return next(at for at in range(len(content)) if content[at : at + 4] == b"mdat") + 4


def zeroed(content: bytearray, size: int) -> bytearray:
    start = (mdat(content) + len(content)) // 2
    content[start : start + size] = bytes(size)
    return content


def without_middle(content: bytearray) -> bytearray:
    start = (mdat(content) + len(content)) // 2
    del content[start : start + 50_000]
    return content


async def test_whole_clip_is_described(sample):
    facts = await verify_clip(sample().path, EXPECTED)
    assert (facts.frames, facts.has_video, facts.has_audio) == (180, True, True)
    assert facts.duration_seconds == pytest.approx(6.0, abs=0.03)
    assert (facts.first_frame_seconds, facts.last_frame_seconds) == (0.0, pytest.approx(179 / 30))
    assert facts.size_bytes == sample().path.stat().st_size


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda content: b"", "0 bytes"),
        (lambda content: content[: len(content) // 2], "cut off"),
        (lambda content: content[: len(content) * 99 // 100], "cut off"),
        (without_middle, "cut off"),
        (lambda content: content.replace(b"moov", b"free", 1), "no moov"),
        (lambda content: zeroed(content, 65_536), "damaged"),
        (lambda content: b"not media at all" * 50, "no moov"),
    ],
    ids=["empty", "half", "one percent short", "part lost", "no index", "zeroed", "text"],
)
async def test_damage_is_found(damaged, change, complaint):
    with pytest.raises(OutputCorrupt, match=complaint):
        await verify_clip(damaged(change), EXPECTED)


async def test_single_wiped_picture_in_the_middle_is_found(sample, damaged):
    with av.open(str(sample().path)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
    # zeros read as units of length 0, and these fill such a packet to the last byte
    wiped = next(packet for packet in packets[60:] if packet.size % 4 == 0)

    def wipe(content: bytearray) -> bytearray:
        content[wiped.pos : wiped.pos + wiped.size] = bytes(wiped.size)
        return content

    with pytest.raises(OutputCorrupt, match="unreadable picture"):
        await verify_clip(damaged(wipe), EXPECTED)


async def test_missing_output_is_found(tmp_path):
    with pytest.raises(OutputCorrupt, match="not written"):
        await verify_clip(tmp_path / "clip.mp4", EXPECTED)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("-t", "3", "-c", "copy"), "long instead of"),
        (("-an", "-c", "copy"), "no sound"),
        (("-vn", "-c", "copy"), "no picture"),
    ],
)
async def test_valid_file_that_is_not_what_was_asked_for_is_found(sample, remux, options, complaint):
    other = remux(sample(), "clip.mp4", *options, "-movflags", "+faststart")
    with pytest.raises(OutputCorrupt, match=complaint):
        await verify_clip(other.path, EXPECTED)


async def test_sound_that_nobody_asked_for_is_found(sample):
    with pytest.raises(OutputCorrupt, match="unexpected sound"):
        await verify_clip(sample().path, replace(EXPECTED, has_audio=False))


async def test_frame_behind_the_end_is_found(sample):
    with pytest.raises(OutputCorrupt, match="behind its end"):
        await verify_clip(sample().path, replace(EXPECTED, frames_before_seconds=5.9))


async def test_sound_that_begins_late_is_found(sample, remux):
    late = ("-itsoffset", "1", "-i", str(sample().path), "-map", "0:v", "-map", "1:a", "-t", "6", "-c", "copy")
    other = remux(sample(), "clip.mp4", *late, "-movflags", "+faststart")
    with pytest.raises(OutputCorrupt, match=r"no sound before 0\.9|no sound before 1\.0"):
        await verify_clip(other.path, replace(EXPECTED, sound_by_seconds=0.05))


async def test_index_at_the_end_is_found(sample, remux):
    with pytest.raises(OutputCorrupt, match="index last"):
        await verify_clip(remux(sample(), "clip.mp4", "-c", "copy").path, EXPECTED)


async def test_index_lies_first_for_players(sample):
    with sample().path.open("rb") as file:
        kinds = [box.kind for box in walk_boxes(file).boxes]
    assert kinds.index("moov") < kinds.index("mdat")
