"""How a sprite is laid out, and what its WebVTT file says."""

from pathlib import Path

import pytest

from worker.domain.media import ClipFile, Mode
from worker.domain.request import Sprite
from worker.errors import InvalidRequest
from worker.media.sheet import plan_sheet


def clip(seconds: float, gap: float = 4.0, size: tuple[int, int] = (1280, 720)) -> ClipFile:
    return ClipFile(
        Path("clip.mp4"), Mode.EXACT, seconds, 0.0, seconds, True, True,
        width=size[0], height=size[1], keyframe_gap_seconds=gap,
    )  # fmt: skip


def test_every_moment_has_one_picture_and_each_its_place():
    sheet = plan_sheet(clip(7.5), Sprite(columns=3, every=2))
    assert (sheet.tiles, sheet.columns, sheet.rows, sheet.size) == (4, 3, 2, (480, 180))
    assert sheet.thumbnails("s.jpg").splitlines() == [
        "WEBVTT", "",
        "00:00:00.000 --> 00:00:02.000", "s.jpg#xywh=0,0,160,90", "",
        "00:00:02.000 --> 00:00:04.000", "s.jpg#xywh=160,0,160,90", "",
        "00:00:04.000 --> 00:00:06.000", "s.jpg#xywh=320,0,160,90", "",
        "00:00:06.000 --> 00:00:07.500", "s.jpg#xywh=0,90,160,90",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "gap", "every_ms", "by_keyframes"),
    [(5, 4.0, 1000, False), (30, 4.0, 3000, False), (300, 4.0, 4000, True), (300, 8.3, 8300, True),
     (3600, 4.0, 36000, True), (3600, 500.0, 360_000, False)],
)  # fmt: skip
def test_distance_follows_the_keyframes_where_they_are_near_enough(seconds, gap, every_ms, by_keyframes):
    sheet = plan_sheet(clip(seconds, gap), Sprite())
    assert (sheet.every_ms, sheet.by_keyframes) == (every_ms, by_keyframes)


def test_own_distance_is_kept_and_keyframes_used_only_when_dense_enough():
    assert not plan_sheet(clip(60, 4.0), Sprite(every=2)).by_keyframes
    assert plan_sheet(clip(60, 1.0), Sprite(every=2)).by_keyframes
    # keyframes of a stored clip may be unknown
    assert not plan_sheet(clip(60, 0.0), Sprite(every=2)).by_keyframes


@pytest.mark.parametrize(
    ("size", "tile"), [((720, 1280), (90, 160)), ((1280, 720), (160, 90)), ((64, 36), (64, 36)), ((4000, 4), (160, 2))]
)
def test_small_pictures_keep_the_shape_and_are_never_enlarged(size, tile):
    sheet = plan_sheet(clip(5, size=size), Sprite())
    assert (sheet.tile_width, sheet.tile_height) == tile


def test_more_pictures_than_fit_are_refused():
    with pytest.raises(InvalidRequest, match=r"sprite\.every: 0\.1 s makes 1010 pictures"):
        plan_sheet(clip(101), Sprite(every=0.1))
