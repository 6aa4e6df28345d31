"""Clips with captions: drawn into every frame that has some, or as a track; frame by frame the same clip."""

import av
import numpy as np
import pytest

from tests.integration.media.clips import LocalSource
from worker.domain.captions import make_cues
from worker.domain.media import ClipRange, Mode
from worker.domain.transcript import Segment, Transcript, Word
from worker.errors import OutputCorrupt
from worker.media.ass import Layout, to_ass
from worker.media.captions import CaptionsMaker
from worker.media.cut import Style
from worker.media.encoding import ENCODERS
from worker.media.frame_code import read_frame_number
from worker.media.probe import probe
from worker.media.process import Limits
from worker.media.sample import make_sample

LIMITS = Limits(wall_seconds=30, stall_seconds=15, memory_bytes=6 * 2**30, open_files=64)


def said(*texts, at=0.5, language="en"):
    """Each text for a second, one after the other."""
    segments = []
    for number, text in enumerate(texts):
        start = at + number
        words = text.split()
        step = 0.9 / len(words)
        spoken = tuple(Word(start + n * step, start + (n + 1) * step, word) for n, word in enumerate(words))
        segments.append(Segment(start, start + 0.9, text, spoken))
    return Transcript("test", language, tuple(segments))


@pytest.fixture
def maker(ffmpeg_path, monkeypatch, tmp_path):
    # a machine without any font of its own
    nothing = tmp_path / "fontconfig"
    nothing.mkdir()
    (nothing / "fonts.conf").write_text("<?xml version='1.0'?><fontconfig></fontconfig>")
    monkeypatch.setenv("FONTCONFIG_FILE", str(nothing / "fonts.conf"))
    monkeypatch.setenv("HOME", str(nothing))
    return CaptionsMaker(ffmpeg_path, limits=LIMITS)


@pytest.fixture
def clipped(cutter, remux, tmp_path):
    async def cut(size=(320, 180), mode=Mode.SMART, folder="work", start=0.4, end=2.4, crop=None):
        source = LocalSource(make_sample(tmp_path / "source.mp4", seconds=3, size=size, gop=20))
        if crop:
            source = remux(source, "narrow.mp4", "-vf", f"crop={crop}")
        work = tmp_path / folder / "clip-work.mp4"
        work.parent.mkdir(exist_ok=True)
        span = ClipRange(start, end)
        return await cutter.cut(source, await probe(source), span, mode=mode, work_path=work, style=Style())

    return cut


def frames(path):
    with av.open(str(path)) as container:
        return [(frame.pts * frame.time_base, frame.to_ndarray(format="gray")) for frame in container.decode(video=0)]


def drawn(clip, captioned):
    """How much the lower third of each frame differs."""
    found = []
    for (at, plain), (also_at, shown) in zip(frames(clip), frames(captioned), strict=True):
        assert at == pytest.approx(also_at, abs=0.001)
        assert read_frame_number(plain) == read_frame_number(shown)
        lower = slice(plain.shape[0] * 2 // 3, None)
        difference = np.abs(plain[lower].astype(int) - shown[lower].astype(int)) > 60
        found.append((float(at), int(difference.sum())))
    return found


@pytest.mark.parametrize("mode", [Mode.SMART, Mode.EXACT, Mode.COPY])
async def test_captions_are_drawn_while_they_are_due_and_only_then(maker, clipped, tmp_path, mode):
    clip = await clipped(mode=mode)
    await maker.burn(clip, said("Fail better.", at=0.8), tmp_path / "burnt.mp4")
    (cue,) = make_cues(said("Fail better.", at=0.8), until_seconds=clip.duration_seconds)
    for at, pixels in drawn(clip.path, tmp_path / "burnt.mp4"):
        if cue.start_seconds + 0.02 < at < cue.end_seconds - 0.02:
            assert pixels > 60
        elif not cue.start_seconds - 0.05 < at < cue.end_seconds + 0.05:
            assert pixels < 20


async def test_directory_may_have_any_name(maker, clipped, tmp_path):
    clip = await clipped(folder="it's: a [day], 100% \\ ok;")
    path = clip.path.with_name("burnt.mp4")
    await maker.burn(clip, said("Hello", at=0.2), path)
    assert max(pixels for _, pixels in drawn(clip.path, path)) > 50


@pytest.mark.parametrize(
    "text", [r"{\an8}up", r"{hidden", r"a\Nb", "<b>bold</b>", r"{\p1}m 0 0 l 99 99{\p0}", "ünï—ça ✓"]
)
async def test_words_are_never_commands(maker, clipped, tmp_path, text):
    """All of them are letters in the lower third, on one line, where an ordinary word is too."""
    clip = await clipped()
    await maker.burn(clip, said(text, at=0.2), tmp_path / "burnt.mp4")
    await maker.burn(clip, said("x" * len(text), at=0.2), tmp_path / "plain.mp4")
    whole = dict(zip(("odd", "plain"), (frames(tmp_path / "burnt.mp4"), frames(tmp_path / "plain.mp4")), strict=True))
    base = frames(clip.path)[15][1].astype(int)
    marks = {name: np.abs(found[15][1].astype(int) - base) > 60 for name, found in whole.items()}
    assert marks["odd"][120:].sum() > marks["plain"][120:].sum() / 3
    assert marks["odd"][:110].sum() < 20
    height = {name: np.flatnonzero(found.any(axis=1)).size for name, found in marks.items()}
    assert height["odd"] < 2 * height["plain"]


@pytest.mark.parametrize(("size", "crop"), [((640, 360), "202:360"), ((640, 360), None), ((162, 120), None)])
async def test_captions_fit_into_pictures_of_any_shape(maker, clipped, tmp_path, size, crop):
    clip = await clipped(size=size, crop=crop)
    long = "We were all going direct to heaven, we were all going direct the other way"
    await maker.burn(clip, said(long, at=0.2), tmp_path / "burnt.mp4")
    layout = Layout(clip.width, clip.height)
    seen = np.zeros((clip.height, clip.width), dtype=bool)
    for (_, plain), (_, shown) in zip(frames(clip.path), frames(tmp_path / "burnt.mp4"), strict=True):
        seen |= np.abs(plain.astype(int) - shown.astype(int)) > 80
    columns = np.flatnonzero(seen[clip.height // 2 :].sum(axis=0) > 1)
    assert columns.size > clip.width / 4
    assert columns[0] >= layout.side_pixels * 0.6
    assert columns[-1] <= clip.width - layout.side_pixels * 0.6


async def test_encoder_that_fails_gives_way_to_the_processor(ffmpeg_path, clipped, tmp_path):
    maker = CaptionsMaker(ffmpeg_path, limits=LIMITS, encoder=ENCODERS["h264_nvenc"])
    clip = await clipped()
    made = await maker.burn(clip, said("Hello"), tmp_path / "burnt.mp4")
    assert made.cpu_fallback


@pytest.mark.parametrize(("language", "tag"), [("en-GB", "eng"), ("de", "deu"), ("xx", "und")])
async def test_track_lies_beside_an_untouched_clip(maker, clipped, tmp_path, language, tag):
    clip = await clipped()
    transcript = said("Ever tried.", "Ever failed & <lost>.", language=language)
    await maker.add_track(clip, transcript, tmp_path / "track.mp4")
    with av.open(str(tmp_path / "track.mp4")) as container:
        (subtitles,) = container.streams.subtitles
        assert (subtitles.codec_context.name, subtitles.metadata["language"]) == ("mov_text", tag)
        packets = [bytes(packet)[2:].decode() for packet in container.demux(subtitles) if packet.size > 2]
    assert [text.replace("\u2060", "") for text in packets] == ["Ever tried.", "Ever failed & <lost>."]
    for kind in ("video", "audio"):
        assert coded(clip.path, kind) == coded(tmp_path / "track.mp4", kind)
    assert [at for at, _ in frames(clip.path)] == [at for at, _ in frames(tmp_path / "track.mp4")]


def coded(path, kind):
    with av.open(str(path)) as container:
        return [bytes(packet) for packet in container.demux(**{kind: 0}) if packet.size]


async def test_track_that_lost_captions_is_not_published(maker, clipped, tmp_path, monkeypatch):
    clip = await clipped()
    monkeypatch.setattr("worker.media.captions.to_srt", lambda cues: "1\n00:00:00,500 --> 00:00:01,000\nonly one\n")
    with pytest.raises(OutputCorrupt, match="1 captions instead of 2"):
        await maker.add_track(clip, said("one.", "two."), tmp_path / "track.mp4")


def test_script_has_the_picture_s_own_size():
    script = to_ass(make_cues(said("Hello")), Layout(1080, 1920))
    assert "PlayResX: 1080\nPlayResY: 1920" in script
    assert "Dialogue: 0,0:00:00.50," in script
