import pytest

from tests.unit.media.smart.coded import encoded
from worker.media.smart.order import SmartOrder, Unfit
from worker.media.smart.vp9 import Vp9

ORDER = SmartOrder(
    input="", protocols=(), formats=(), output="", start_seconds=0, end_seconds=1, source_start_seconds=0, fps=25,
    video_index=0, audio_index=None, first_frame_by_seconds=0.1, preset="veryfast", crf=18, threads=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def stream():
    return encoded("libvpx-vp9", {"deadline": "realtime", "cpu-used": "8", "g": "10", "b": "200k"}, frames=40)


def together(*frames: bytes) -> bytes:
    """One packet of several frames, with its index."""
    marker = bytes([0xC0 | 1 << 3 | (len(frames) - 1)])
    return b"".join(frames) + marker + b"".join(len(frame).to_bytes(2, "little") for frame in frames) + marker


def hidden(frame: bytes) -> bytes:
    return bytes([frame[0] & ~2]) + frame[1:]


def test_only_keyframes_are_starts(stream):
    source, packets = stream
    told = [Vp9(source, ORDER).describe(packet) for packet in packets]
    assert [at for at, each in enumerate(told) if each.is_start] == [0, 10, 20, 30]


def test_hidden_frames_may_lie_inside_of_a_packet(stream):
    source, packets = stream
    assert Vp9(source, ORDER).describe(together(hidden(packets[0]), packets[1])).is_start
    assert not Vp9(source, ORDER).describe(together(hidden(packets[1]), packets[2])).is_start


def test_what_is_no_single_picture_is_refused(stream):
    source, packets = stream
    with pytest.raises(Unfit, match="damaged"):
        Vp9(source, ORDER).describe(b"\0\0\0")
    for packet in (together(*packets[:2]), hidden(packets[1])):
        with pytest.raises(Unfit, match="one picture each"):
            Vp9(source, ORDER).describe(packet)


def test_pictures_of_another_size_are_refused(stream):
    source, packets = stream
    coding = Vp9(source, ORDER)
    keyframe = bytearray(packets[0])
    keyframe[4] ^= 1
    with pytest.raises(Unfit):
        coding.describe(bytes(keyframe))
