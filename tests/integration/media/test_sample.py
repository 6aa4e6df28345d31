from fractions import Fraction

import av
import numpy as np
import pytest

from tests.integration.media.clips import shown
from worker.media.boxes import walk_boxes
from worker.media.sample import make_sample


def sound(path) -> np.ndarray:
    with av.open(str(path)) as container:
        return np.concatenate([frame.to_ndarray()[0] for frame in container.decode(audio=0)])


@pytest.mark.parametrize("fps", [24, Fraction(30000, 1001), 60])
def test_every_frame_carries_its_number(tmp_path, fps):
    path = make_sample(tmp_path / "s.mp4", seconds=2, fps=fps, size=(320, 180))
    assert shown(path).numbers == list(range(round(2 * fps)))


@pytest.mark.parametrize(("gop", "b_frames"), [(1, 0), (15, 0), (30, 3)])
def test_keyframes_lie_where_they_were_asked_for(tmp_path, gop, b_frames):
    path = make_sample(tmp_path / "s.mp4", seconds=2, size=(160, 90), gop=gop, b_frames=b_frames)
    with av.open(str(path)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
    keyframes = [round(float(packet.pts * packet.time_base) * 30) for packet in packets if packet.is_keyframe]
    assert keyframes == list(range(0, 60, gop))
    assert any(packet.pts != packet.dts for packet in packets) == (b_frames > 0)


@pytest.mark.parametrize(("faststart", "order"), [(True, ["moov", "mdat"]), (False, ["mdat", "moov"])])
def test_index_lies_where_it_was_asked_for(tmp_path, faststart, order):
    path = make_sample(tmp_path / "s.mp4", seconds=0.5, size=(160, 90), faststart=faststart)
    with path.open("rb") as file:
        kinds = [box.kind for box in walk_boxes(file).boxes if box.kind in {"moov", "mdat"}]
    assert kinds == order


def test_somebody_speaks(tmp_path):
    path = make_sample(tmp_path / "s.mp4", seconds=8, fps=5, size=(160, 90))
    levels = np.abs(sound(path)).reshape(-1, 1024).mean(axis=1)
    # speech: loud syllables and pauses between them
    assert levels.max() > 0.03
    assert np.percentile(levels, 10) < levels.max() / 10


def test_chimes_stand_in_for_speech(tmp_path):
    path = make_sample(tmp_path / "s.mp4", seconds=3, fps=5, size=(160, 90), speech=False)
    assert np.abs(sound(path)).max() > 0.1
