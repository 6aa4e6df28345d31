from fractions import Fraction
from math import ceil

import pytest

from tests.integration.media.clips import shown, track_seconds
from worker.domain.media import ClipRange, Mode
from worker.media.cut import Style
from worker.media.probe import probe

NTSC = Fraction(30000, 1001)


async def cut(cutter, source, start, end, work_path, **options):
    return await cutter.cut(
        source, await probe(source), ClipRange(start, end), mode=Mode.EXACT, work_path=work_path, **options
    )


@pytest.mark.parametrize("fps", [Fraction(24000, 1001), 24, 25, NTSC, 30, 60])
@pytest.mark.parametrize(("gop", "b_frames"), [(1, 0), (12, 0), (48, 3), (250, 2)])
async def test_clip_holds_exactly_the_frames_of_its_range(cutter, sample, work_path, fps, gop, b_frames):
    source = sample(seconds=4, fps=fps, gop=gop, b_frames=b_frames)
    first, last = 37, 80
    clip = await cut(cutter, source, float(first / Fraction(fps)), float(last / Fraction(fps)), work_path)
    assert shown(clip.path).numbers == list(range(first, last))
    assert (clip.frames, clip.frames_reencoded) == (last - first, last - first)


@pytest.mark.parametrize("fps", [24, NTSC, 60])
@pytest.mark.parametrize(
    ("start", "end"),
    [(0.0, 1.0), (1.005, 2.0), (1.0, 1.7777), (0.501, 0.998), (2.0001, 2.9999), (1.234, 1.235 + 1 / 24)],
)
async def test_boundaries_between_frames_take_what_is_shown_from_start_to_end(
    cutter, sample, work_path, fps, start, end
):
    source = sample(seconds=4, fps=fps)
    clip = await cut(cutter, source, start, end, work_path)
    # a millisecond of grace: people write milliseconds
    expected = range(ceil((start - 0.001) * fps), ceil((end - 0.001) * fps))
    assert shown(clip.path).numbers == list(expected)


@pytest.mark.parametrize("number", [1, 31, 61, 76])
async def test_frame_named_in_milliseconds_is_the_first_one(cutter, sample, work_path, number):
    source = sample(seconds=4, fps=NTSC)
    clip = await cut(cutter, source, round(float(number / NTSC), 3), round(float((number + 5) / NTSC), 3), work_path)
    assert shown(clip.path).numbers == list(range(number, number + 5))


async def test_whole_source_keeps_every_frame_and_lasts_as_long(cutter, sample, work_path):
    source = sample(seconds=4)
    clip = await cut(cutter, source, 0.0, 4.0, work_path)
    assert shown(clip.path).numbers == list(range(120))
    assert clip.duration_seconds == pytest.approx(4.0, abs=0.001)


async def test_end_behind_the_source_ends_with_it(cutter, sample, work_path):
    clip = await cut(cutter, sample(seconds=4), 3.0, 99.0, work_path)
    assert (clip.start_seconds, clip.end_seconds) == (3.0, 4.0)
    assert shown(clip.path).numbers == list(range(90, 120))


async def test_picture_and_sound_last_equally_long(cutter, sample, work_path):
    clip = await cut(cutter, sample(), 1.5, 4.25, work_path)
    tracks = track_seconds(clip)
    assert tracks["video"] == pytest.approx(2.75, abs=1 / 30)
    assert tracks["audio"] == pytest.approx(2.75, abs=0.025)


@pytest.mark.parametrize("name", ["source.mkv", "source.ts"])
async def test_other_containers_are_cut_on_their_own_timeline(cutter, sample, remux, work_path, name):
    source = remux(sample(), name, "-c", "copy")
    probed = await probe(source)
    start = probed.video.start_seconds + 2.5
    clip = await cut(cutter, source, start, start + 1.0, work_path)
    assert shown(clip.path).numbers == list(range(75, 105))


async def test_video_that_starts_late_stays_late(cutter, sample, remux, work_path):
    late = ("-itsoffset", "0.5", "-i", str(sample().path), "-map", "1:v", "-map", "0:a", "-c", "copy")
    source = remux(sample(), "late.mp4", *late)
    probed = await probe(source)
    assert probed.video.start_seconds == pytest.approx(0.5, abs=0.001)
    clip = await cut(cutter, source, 0.0, 1.0, work_path)
    picture = shown(clip.path)
    assert (picture.numbers, picture.times[0]) == (list(range(15)), pytest.approx(0.5, abs=0.001))
    clip = await cut(cutter, source, 1.0, 2.0, work_path)
    assert shown(clip.path).numbers == list(range(15, 45))


async def test_variable_frame_rate_keeps_each_frames_time(cutter, sample, remux, work_path):
    keep = "select='lt(mod(n,7),4)'"
    source = remux(sample(), "vfr.mp4", "-vf", keep, "-fps_mode", "vfr", "-c:a", "copy", "-preset", "ultrafast")
    clip = await cut(cutter, source, 1.0, 3.0, work_path)
    wanted = [number for number in range(30, 90) if number % 7 < 4]
    picture = shown(clip.path)
    assert picture.numbers == wanted
    assert picture.times == pytest.approx([number / 30 - 1 for number in wanted], abs=0.001)


async def test_still_picture_is_shown_from_the_start_and_not_beyond_the_end(cutter, sample, remux, work_path):
    pause = "select='not(between(n,60,135))'"
    source = remux(sample(), "still.mp4", "-vf", pause, "-fps_mode", "vfr", "-c:a", "copy", "-preset", "ultrafast")
    clip = await cut(cutter, source, 3.0, 5.0, work_path)
    picture = shown(clip.path)
    assert (picture.numbers[:2], picture.times[0]) == ([59, 136], 0.0)
    clip = await cut(cutter, source, 1.5, 3.0, work_path)
    assert (shown(clip.path).numbers[-1], clip.duration_seconds) == (59, pytest.approx(1.5, abs=0.05))


@pytest.mark.parametrize(("degrees", "turns"), [("90", -1), ("180", 2), ("270", 1)])
async def test_turned_picture_is_written_upright(cutter, sample, remux, work_path, degrees, turns):
    source = remux(sample(), "turned.mp4", "-c", "copy", before=("-display_rotation:v:0", degrees))
    probed = await probe(source)
    # ffmpeg counts against the clock
    assert probed.video.rotation == -int(degrees) % 360
    clip = await cut(cutter, source, 1.0, 1.5, work_path)
    assert shown(clip.path, quarter_turns=turns).numbers == list(range(30, 45))


async def test_max_height_scales_down_but_never_up(cutter, sample, work_path):
    clip = await cut(cutter, sample(), 1.0, 1.5, work_path, style=Style(max_height=91))
    written = (await probe(type(sample())(clip.path))).video
    assert (written.width, written.height) == (160, 90)
    assert shown(clip.path).numbers == list(range(30, 45))
    clip = await cut(cutter, sample(), 1.0, 1.5, work_path, style=Style(max_height=1080))
    written = (await probe(type(sample())(clip.path))).video
    assert (written.width, written.height) == (320, 180)


async def test_height_counts_as_the_picture_is_shown(cutter, sample, remux, work_path):
    source = remux(sample(), "turned.mp4", "-c", "copy", before=("-display_rotation:v:0", "90"))
    clip = await cut(cutter, source, 1.0, 1.5, work_path, style=Style(max_height=160))
    assert (clip.width, clip.height) == (90, 160)


@pytest.mark.parametrize(("aspect", "shown_size"), [("4/3", (240, 180)), ("2/1", (360, 180))])
async def test_pixels_that_are_not_square_stay_in_shape(cutter, sample, remux, work_path, aspect, shown_size):
    anamorphic = ("-vf", f"scale=180:180,setdar={aspect}", "-c:a", "copy", "-preset", "ultrafast")
    source = remux(sample(), "anamorphic.mp4", *anamorphic)
    for style in (Style(), Style(max_height=90)):
        clip = await cut(cutter, source, 1.0, 1.5, work_path, style=style)
        assert clip.width / clip.height == pytest.approx(shown_size[0] / shown_size[1], rel=0.02)


async def test_odd_sizes_lose_at_most_a_row(cutter, sample, remux, work_path):
    odd = ("-vf", "scale=321:181", "-pix_fmt", "yuv444p", "-c:a", "copy", "-preset", "ultrafast")
    clip = await cut(cutter, remux(sample(), "odd.mp4", *odd), 1.0, 1.5, work_path)
    assert (clip.width, clip.height) == (pytest.approx(320, abs=1), 180)


async def test_transport_stream_with_long_groups_of_pictures_is_cut_exactly(cutter, sample, remux, work_path):
    # a seek lands 12 s before the start and meets no keyframe
    source = remux(sample(seconds=20, gop=600), "long.ts", "-c", "copy")
    begin = (await probe(source)).video.start_seconds
    clip = await cut(cutter, source, begin + 16.02, begin + 17.0, work_path)
    assert shown(clip.path).numbers == list(range(481, 510))


async def test_progress_rises_to_the_end(cutter, sample, work_path):
    seen: list[float] = []
    await cut(cutter, sample(), 0.0, 6.0, work_path, on_progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
