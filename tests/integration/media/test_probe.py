import pytest

from tests.integration.media.clips import LocalSource
from worker.errors import SourceForbidden, SourceNotFound, SourceUnsupported, UpstreamFailure
from worker.media.probe import probe


def write(tmp_path, content: bytes, name: str = "x.mp4") -> LocalSource:
    path = tmp_path / name
    path.write_bytes(content)
    return LocalSource(path)


async def test_probe_tells_what_a_source_holds(sample):
    found = await probe(sample())
    assert (found.format.split(",")[0], found.duration_seconds, found.start_seconds) == ("mov", pytest.approx(6.0), 0.0)
    video, audio = found.video, found.audio
    assert (video.codec, video.width, video.height, video.fps, video.rotation) == ("h264", 320, 180, 30.0, 0)
    assert (audio.codec, audio.sample_rate, audio.channels) == ("aac", 48_000, 1)


async def test_transport_stream_has_a_timeline_that_starts_elsewhere(sample, remux):
    found = await probe(remux(sample(), "source.ts", "-c", "copy"))
    assert found.start_seconds > 1
    assert found.duration_seconds == pytest.approx(6.0, abs=0.1)


async def test_missing_file_is_not_found(tmp_path):
    with pytest.raises(SourceNotFound, match=r"talk\.mp4 does not exist"):
        await probe(LocalSource(tmp_path / "nothing.mp4"))


async def test_empty_file_is_refused(tmp_path):
    with pytest.raises(SourceUnsupported, match="0 bytes"):
        await probe(write(tmp_path, b""))


@pytest.mark.parametrize("content", [b"<html>not found</html>" * 100, bytes(10_000), b"\x00\x00\x00\x18ftypmp42"])
async def test_what_is_no_media_is_refused(tmp_path, content):
    with pytest.raises(SourceUnsupported):
        await probe(write(tmp_path, content))


@pytest.mark.parametrize(
    "content",
    [
        b"ffconcat version 1.0\nfile 'secret.ts'\n",
        b"#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n",
        b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n",
    ],
)
async def test_files_that_name_other_files_are_refused(tmp_path, content):
    with pytest.raises(SourceUnsupported):
        await probe(write(tmp_path, content))


@pytest.mark.parametrize("share", [0.5, 0.99])
async def test_file_with_its_index_first_is_found_cut(sample, tmp_path, share):
    whole = sample().path.read_bytes()
    half = int(len(whole) * share)
    with pytest.raises(SourceUnsupported, match=f"cut off at byte {half} of {len(whole)}"):
        await probe(write(tmp_path, whole[:half]))


async def test_file_with_its_index_last_is_found_cut(sample, tmp_path):
    whole = sample(faststart=False).path.read_bytes()
    with pytest.raises(SourceUnsupported, match="cut off"):
        await probe(write(tmp_path, whole[: len(whole) // 2]))


async def test_cut_shows_in_the_index_where_the_file_is_out_of_reach(sample):
    class Elsewhere(LocalSource):
        #: keeps the check of local files out, as an address on loopback does
        input = property(lambda self: str(self.path))
        size_bytes = property(lambda self: 40_000)

    with pytest.raises(SourceUnsupported, match="cut off at byte 40000"):
        await probe(Elsewhere(sample().path))


async def test_subtitles_alone_are_refused(tmp_path, sample, remux):
    subtitles = tmp_path / "s.srt"
    subtitles.write_text("1\n00:00:00,000 --> 00:00:02,000\nHello\n")
    source = remux(sample(), "words.mkv", "-i", str(subtitles), "-map", "1:s")
    with pytest.raises(SourceUnsupported, match="neither picture nor sound"):
        await probe(source)


async def test_unreachable_address_may_be_tried_again(tmp_path, unused_tcp_port):
    class Unreachable(LocalSource):
        input = f"http://127.0.0.1:{unused_tcp_port}/talk.mp4"

    with pytest.raises(UpstreamFailure):
        await probe(Unreachable(tmp_path, protocols=("http", "tcp")))


async def test_protocol_that_was_not_granted_is_refused(sample):
    with pytest.raises(SourceUnsupported):
        await probe(LocalSource(sample().path, protocols=("http",)))


async def test_failure_the_source_knows_of_wins(tmp_path):
    class Known(LocalSource):
        def failure(self):
            return SourceForbidden("the bucket is closed")

    with pytest.raises(SourceForbidden, match="bucket is closed"):
        await probe(Known(write(tmp_path, b"no media at all" * 99).path))
