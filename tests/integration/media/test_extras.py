"""What is made of a finished clip, in one run, and verified."""

import wave

import av
import pytest

from tests.integration.media.clips import shown, track_seconds
from worker.domain.media import ClipRange, Mode
from worker.domain.request import Sprite
from worker.errors import OutputCorrupt
from worker.media.cut import Style
from worker.media.encoding import CPU, ENCODERS, Encoding
from worker.media.extras import ExtrasMaker, verify_jpeg
from worker.media.extras_argv import Extras, Poster, Rendition, SpriteSheet, make_extras
from worker.media.frame_code import read_frame_number
from worker.media.probe import probe
from worker.media.process import Limits
from worker.media.sheet import plan_sheet

LIMITS = Limits(wall_seconds=30, stall_seconds=15)


@pytest.fixture
def maker(ffmpeg_path):
    return ExtrasMaker(ffmpeg_path, limits=LIMITS)


@pytest.fixture
def clipped(cutter, sample, work_path):
    async def cut(source=None, mode=Mode.EXACT, start=1.5, end=3.0, **style):
        source = source or sample()
        span = ClipRange(start, end)
        return await cutter.cut(source, await probe(source), span, mode=mode, work_path=work_path, style=Style(**style))

    return cut


def numbers_on(sheet_path, sheet):
    with av.open(str(sheet_path)) as container:
        picture = next(container.decode(video=0)).to_ndarray(format="gray")
    found = []
    for number in range(sheet.tiles):
        row, column = divmod(number, sheet.columns)
        top, left = row * sheet.tile_height, column * sheet.tile_width
        tile = picture[top : top + sheet.tile_height, left : left + sheet.tile_width]
        found.append(read_frame_number(tile))
    return found


async def test_everything_comes_from_one_run(maker, clipped, tmp_path, ffmpeg_path):
    clip = await clipped()
    extras = Extras(
        poster=Poster(tmp_path / "poster.jpg", 0.5),
        sprite=SpriteSheet(tmp_path / "sprite.jpg", plan_sheet(clip, Sprite(every=0.5))),
        renditions=(Rendition(tmp_path / "90.mp4", 90), Rendition(tmp_path / "60.mp4", 60)),
        speech=tmp_path / "speech.wav",
        loudness=tmp_path / "loudness.txt",
    )
    command = make_extras(ffmpeg_path, clip, extras, encoding=Encoding(), encoder=CPU)
    assert command.count("-i") == 2, "one decode for all, and one seek for the poster"
    assert command.count("-protocol_whitelist") == command.count("-format_whitelist") == 2
    made = await maker.make(clip, extras)
    assert -60 < made.loudness.integrated_lufs < -5
    assert shown(tmp_path / "poster.jpg").numbers == [60]
    original = shown(clip.path)
    for height in (90, 60):
        smaller = shown(tmp_path / f"{height}.mp4")
        assert smaller.numbers == original.numbers == list(range(45, 90))
        assert smaller.times == pytest.approx(original.times, abs=0.001)
    with wave.open(str(tmp_path / "speech.wav")) as speech:
        assert (speech.getframerate(), speech.getnchannels(), speech.getsampwidth()) == (16_000, 1, 2)
        assert speech.getnframes() / 16_000 == pytest.approx(1.5, abs=0.03)


@pytest.mark.parametrize("every", [0.5, 1.0, 1.5])
async def test_each_picture_of_a_sprite_is_what_is_shown_at_its_time(maker, clipped, tmp_path, sample, every):
    clip = await clipped(sample(), Mode.SMART, 0.0, 5.9)
    sheet = plan_sheet(clip, Sprite(columns=4, every=every))
    await maker.make(clip, Extras(sprite=SpriteSheet(tmp_path / "sprite.jpg", sheet)))
    # keyframes lie a second apart; where that is dense enough, nothing else is decoded
    assert sheet.by_keyframes is (every >= 1.0)
    step = 30 if sheet.by_keyframes else 1
    expected = [int(number * every * 30 + 0.01) // step * step for number in range(sheet.tiles)]
    assert numbers_on(tmp_path / "sprite.jpg", sheet) == expected


async def test_picture_that_stands_still_is_shown_to_the_end(maker, clipped, tmp_path, sample, remux):
    pause = "select='not(between(n,60,150))'"
    source = remux(sample(), "still.mp4", "-vf", pause, "-fps_mode", "vfr", "-c:a", "copy", "-preset", "ultrafast")
    clip = await clipped(source, Mode.EXACT, 1.5, 4.5)
    sheet = plan_sheet(clip, Sprite(every=0.4))
    poster = Poster(tmp_path / "poster.jpg", 2.5)
    await maker.make(clip, Extras(sprite=SpriteSheet(tmp_path / "sprite.jpg", sheet), poster=poster))
    assert numbers_on(tmp_path / "sprite.jpg", sheet) == [45, 57, *[59] * 6]
    assert shown(poster.path).numbers == [59]


@pytest.mark.parametrize(("every", "outputs"), [(0.5, 2), (1.0, 1)])
async def test_sheet_that_takes_long_tells_how_far_it_is(clipped, tmp_path, sample, ffmpeg_path, every, outputs):
    clip = await clipped(sample(), Mode.SMART, 0.0, 5.9)
    sprite = SpriteSheet(tmp_path / "sprite.jpg", plan_sheet(clip, Sprite(every=every)))
    command = make_extras(ffmpeg_path, clip, Extras(sprite=sprite), encoding=Encoding(), encoder=CPU)
    # the sheet itself is written at the very end; what is merely read tells of every second
    assert command.count("-map") == outputs
    assert (command.count("null") == 1) is (outputs == 2)


async def test_rendition_of_a_turned_anamorphic_clip_is_upright_with_square_pixels(
    maker, clipped, tmp_path, sample, remux
):
    squeezed = remux(sample(), "squeezed.mp4", "-vf", "scale=180:180,setdar=16/9", "-g", "30")
    turned = remux(squeezed, "turned.mp4", "-c", "copy", before=("-display_rotation:v:0", "90"))
    clip = await clipped(turned, Mode.SMART)
    assert (clip.width, clip.height) == (180, 320)
    await maker.make(clip, Extras(renditions=(Rendition(tmp_path / "100.mp4", 100),)))
    with av.open(str(tmp_path / "100.mp4")) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.width, stream.codec_context.height) == (56, 100)
        assert stream.sample_aspect_ratio in {None, 1}


async def test_late_picture_is_late_in_everything(maker, clipped, tmp_path, sample, remux):
    late = ("-itsoffset", "0.5", "-i", str(sample().path), "-map", "1:v", "-map", "0:a", "-c", "copy")
    clip = await clipped(remux(sample(), "late.mp4", *late), Mode.EXACT, 0.0, 2.0)
    poster = Poster(tmp_path / "poster.jpg", 0.1)
    await maker.make(clip, Extras(renditions=(Rendition(tmp_path / "90.mp4", 90),), poster=poster))
    assert shown(poster.path).numbers == [0]
    picture = shown(tmp_path / "90.mp4")
    assert (picture.numbers[0], picture.times[0]) == (0, pytest.approx(0.5, abs=0.001))


async def test_rendition_of_a_copy_has_sound_that_players_know(maker, clipped, tmp_path, sample, remux):
    clip = await clipped(remux(sample(), "mp3.mp4", "-c:v", "copy", "-c:a", "libmp3lame"), Mode.COPY)
    await maker.make(clip, Extras(renditions=(Rendition(tmp_path / "90.mp4", 90),)))
    with av.open(str(tmp_path / "90.mp4")) as container:
        assert container.streams.audio[0].codec_context.name == "aac"
    assert track_seconds(clip)["audio"] == pytest.approx(2.0, abs=0.1)


async def test_encoder_without_a_device_gives_way_to_the_processor(ffmpeg_path, cutter, clipped, tmp_path, sample):
    clip = await clipped()
    maker = ExtrasMaker(ffmpeg_path, limits=LIMITS, encoder=ENCODERS["h264_nvenc"])
    made = await maker.make(clip, Extras(renditions=(Rendition(tmp_path / "90.mp4", 90),)))
    assert "h264_nvenc" in made.cpu_fallback
    assert shown(tmp_path / "90.mp4").numbers == list(range(45, 90))


@pytest.mark.parametrize(("at", "number"), [(0.0, 45), (0.51, 60), (0.5333, 61), (1.49, 89)])
async def test_poster_is_what_is_on_display_at_its_time(maker, clipped, tmp_path, at, number):
    await maker.make(await clipped(), Extras(poster=Poster(tmp_path / "poster.jpg", at)))
    assert shown(tmp_path / "poster.jpg").numbers == [number]


@pytest.mark.parametrize(
    ("content", "complaint"), [(b"", "no whole"), (b"\xff\xd8\xff\xd9", "no picture"), (None, "no picture")]
)
def test_picture_that_is_none_is_found(tmp_path, content, complaint):
    if content is not None:
        (tmp_path / "p.jpg").write_bytes(content)
    with pytest.raises(OutputCorrupt, match=complaint):
        verify_jpeg(tmp_path / "p.jpg")


async def test_picture_of_another_size_is_found(maker, clipped, tmp_path):
    await maker.make(await clipped(), Extras(poster=Poster(tmp_path / "p.jpg", 0.5)))
    verify_jpeg(tmp_path / "p.jpg", size=(320, 180))
    with pytest.raises(OutputCorrupt, match="320 x 180 instead of 480 x 90"):
        verify_jpeg(tmp_path / "p.jpg", size=(480, 90))


async def test_nothing_wanted_is_nothing_done(maker, clipped):
    assert (await maker.make(await clipped(), Extras())).loudness is None
