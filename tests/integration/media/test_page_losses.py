"""Pages that could lose something, and must not do so in silence."""

from dataclasses import replace

import pytest

from tests.integration.media.clips import LocalSource, shown
from worker.domain.media import ClipRange, Quality
from worker.errors import JobError, OutputCorrupt, UpstreamFailure
from worker.media.joining import PageJoiner
from worker.media.pages import PageCutter, PicturePage
from worker.media.probe import probe
from worker.media.process import Limits

LIMITS = Limits(wall_seconds=30, stall_seconds=15)
CLIP = ClipRange(0.5, 5.5)


@pytest.fixture
def cut(ffmpeg_path, tmp_path):
    async def cut(source, probed, page, *, clip=CLIP, name="page.mp4"):
        return await PageCutter(ffmpeg_path, limits=LIMITS).cut_pictures(
            source, probed, clip, page, work_path=tmp_path / name, max_height=None, quality=Quality.SMALL
        )

    return cut


class Failing(LocalSource):
    def failure(self):
        return UpstreamFailure("the origin hung up")


class SwitchedAfter(LocalSource):
    """Another file is read first, as often as it is told; then it is itself again."""

    @classmethod
    def reads(cls, source: LocalSource, *first: LocalSource) -> LocalSource:
        inputs = iter([each.input for each in first])
        own = type("Switched", (cls,), {"input": property(lambda self: next(inputs, f"file:{self.path}"))})
        return own(source.path)


def cut_off(source: LocalSource, share: float) -> LocalSource:
    path = source.path.with_name(f"cut-{share}{source.path.suffix}")
    content = source.path.read_bytes()
    path.write_bytes(content[: round(len(content) * share)])
    return LocalSource(path)


@pytest.mark.parametrize("page", [ClipRange(0.5, 2.0), ClipRange(2.0, 3.5)], ids=["first", "later"])
async def test_page_of_a_source_that_broke_off_is_told_why(cut, sample, page):
    probed = await probe(sample())
    with pytest.raises(UpstreamFailure, match="hung up"):
        await cut(Failing(sample().path), probed, page)


@pytest.mark.parametrize("options", [(), ("-an",)], ids=["with sound", "silent"])
@pytest.mark.parametrize("name", ["source.mkv", "source.ts"])
async def test_page_in_which_a_file_ends_too_early_is_refused(cut, sample, remux, name, options):
    source = remux(sample(), name, "-c", "copy", *options)
    probed = await probe(source)
    broken = cut_off(source, 0.55)
    begin = probed.video.start_seconds
    clip = ClipRange(begin + 0.5, begin + 5.5)
    assert (await cut(broken, probed, ClipRange(begin + 0.5, begin + 1.7), clip=clip)).frames == 36
    for page in (ClipRange(begin + 1.7, begin + 4.2), ClipRange(begin + 4.2, begin + 5.5)):
        with pytest.raises(JobError):
            await cut(broken, probed, page, clip=clip)


async def test_frames_that_are_missing_at_the_end_of_a_page_are_found(cut, sample, remux):
    # sound goes on, so that nothing else tells
    half = ("-filter_complex", "[0:v]trim=end=2.9[v]", "-map", "[v]", "-map", "0:a", "-c:a", "copy")
    source = sample()
    probed = await probe(source)
    for page in (ClipRange(0.5, 3.0), ClipRange(1.5, 3.0)):
        broken = SwitchedAfter.reads(source, remux(source, "broken.mp4", *half))
        with pytest.raises(OutputCorrupt, match=r"last picture at 2\.867 s of the source instead of 2\.967 s"):
            await cut(broken, probed, page)


async def test_frames_that_are_missing_at_the_start_of_a_page_are_read_again(cut, sample, remux):
    late = ("-filter_complex", "[0:v]select='not(between(n,40,46))'[v]", "-map", "[v]", "-fps_mode", "vfr")
    source = sample()
    probed = await probe(source)
    switched = SwitchedAfter.reads(source, remux(source, "late.mp4", *late))
    page = await cut(switched, probed, ClipRange(1.34, 2.5))
    assert shown(page.path).numbers == list(range(41, 75))
    holed = remux(source, "holed.mp4", *late)
    # read by ffmpeg, looked at, looked at for the keyframe, read by ffmpeg once more
    twice = SwitchedAfter.reads(source, holed, source, source, holed)
    with pytest.raises(OutputCorrupt, match=r"lacks what its source shows from 1\.367 s on"):
        await cut(twice, probed, ClipRange(1.34, 2.5))


async def test_pages_that_are_missing_or_double_are_no_clip(cut, sample, tmp_path):
    source = sample()
    probed = await probe(source)
    ranges = [ClipRange(0.5, 2.0), ClipRange(2.0, 3.5), ClipRange(3.5, 5.5)]
    pages = [await cut(source, probed, page, name=f"{number}.mp4") for number, page in enumerate(ranges)]

    async def join(*chosen: PicturePage):
        joiner = PageJoiner(limits=LIMITS)
        return await joiner.join(chosen, None, probe=probed, clip=CLIP, work_path=tmp_path / "joined.mp4")

    assert (await join(*pages)).frames == 150
    with pytest.raises(OutputCorrupt, match=r"ends at 3\.000 s instead of 4\.95\d s"):
        await join(*pages[:2])
    with pytest.raises(OutputCorrupt, match="page 2 begins at tick"):
        await join(pages[0], pages[1], pages[1], pages[2])
    with pytest.raises(OutputCorrupt, match="150 frames instead of 151"):
        await join(replace(pages[0], frames=46), *pages[1:])
    with pytest.raises(OutputCorrupt, match="no picture"):
        await join(PicturePage(None, 0, 0))
    assert sorted(path.name for path in tmp_path.glob("*.json")) == []


async def test_page_that_was_damaged_on_its_way_is_named(cut, sample, tmp_path):
    source = sample()
    probed = await probe(source)
    page = await cut(source, probed, CLIP)
    page.path.write_bytes(page.path.read_bytes()[:-5000])
    with pytest.raises(JobError):
        await PageJoiner(limits=LIMITS).join([page], None, probe=probed, clip=CLIP, work_path=tmp_path / "joined.mp4")
