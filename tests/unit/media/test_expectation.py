from worker.domain.media import AudioStream, ClipRange, Probe, VideoStream
from worker.media.expectation import expect_copy, expect_exact, first_frame_by

AUDIO = AudioStream("aac", 48_000, 2)


def probe(fps: float | None = 25.0, start: float = 0.0) -> Probe:
    return Probe("mov", 60.0, 0.0, VideoStream("h264", 64, 64, fps, start_seconds=start), AUDIO)


def test_duration_may_be_off_by_50_ms_or_a_frame():
    usual = expect_exact(probe(), ClipRange(10, 12), has_video=True)
    assert (usual.shortest_seconds, usual.longest_seconds) == (1.95, 2.05)
    slow = expect_exact(probe(fps=5), ClipRange(10, 12), has_video=True)
    assert (slow.shortest_seconds, slow.longest_seconds) == (1.8, 2.2)


def test_only_the_sources_end_may_be_missing():
    assert expect_exact(probe(), ClipRange(58, 60), has_video=True).shortest_seconds == 1.45


def test_no_frame_may_lie_behind_the_end():
    assert expect_exact(probe(), ClipRange(10, 12), has_video=True).frames_before_seconds == 2


def test_copy_must_be_as_long_as_it_says():
    expected = expect_copy(probe(), ClipRange(8, 12))
    assert (expected.shortest_seconds, expected.longest_seconds) == (3.95, 4.05)
    assert expected.frames_before_seconds is None


def test_encoded_sound_begins_with_the_clip_and_copied_sound_where_it_does():
    assert expect_exact(probe(), ClipRange(10, 12), has_video=True).sound_by_seconds == 0.05
    assert expect_exact(probe(), ClipRange(10, 12), has_video=True, is_copied=True).sound_by_seconds is None


def test_picture_may_come_late_where_the_source_starts_late():
    assert first_frame_by(probe(), ClipRange(10, 12)) == 0.1
    assert first_frame_by(probe(start=3), ClipRange(1, 12)) == 2.1
    assert first_frame_by(probe(fps=5), ClipRange(1, 12)) == 0.4
