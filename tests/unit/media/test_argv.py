from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from worker.domain.media import AudioStream, ClipRange, Probe, VideoStream
from worker.media import argv
from worker.media.encoding import CPU, ENCODERS, Encoding
from worker.media.loudness import Gain
from worker.media.timeline import page_times

FFMPEG = Path("/bin/ffmpeg")
OUT = Path("/media/out.mp4")
VIDEO = VideoStream("h264", 1920, 1080, 25.0, index=0)
AUDIO = AudioStream("aac", 48_000, 2, index=1)

HEAD = ["/bin/ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", "-nostats", "-progress", "pipe:1",
        "-stats_period", "0.2"]  # fmt: skip
FORMATS = "mov,matroska,mpegts,mp3,aac,ogg,wav,flac,avi,flv"
MP4_TAIL = ["-map_chapters", "-1", "-map_metadata", "-1", "-movflags", "+faststart"]


def source(
    video: VideoStream | None = VIDEO, audio: AudioStream | None = AUDIO, form: str = "mov,mp4"
) -> argv.ClipInput:
    return argv.ClipInput("http://127.0.0.1:9/x", ("http", "tcp"), Probe(form, 60.0, 0.0, video, audio))


def recipe(**options: Any) -> argv.Recipe:
    return argv.Recipe(**{"encoding": Encoding(), "encoder": CPU, **options})


def exact(given: argv.ClipInput, **options: Any) -> list[str]:
    return argv.exact_clip(FFMPEG, given, ClipRange(10.0, 12.5), OUT, recipe(**options))


def value(command: list[str], option: str) -> str:
    return command[command.index(option) + 1]


def test_exact_clip_is_cut_by_filters_on_the_containers_timeline():
    assert exact(source()) == [
        *HEAD, "-copyts",
        "-format_whitelist", FORMATS, "-max_pixels", "36000000", "-noaccurate_seek",
        "-protocol_whitelist", "http,tcp", "-recv_buffer_size", "65536", "-ss", "9.800000", "-use_mfra_for", "pts",
        "-i", "http://127.0.0.1:9/x",
        "-filter_complex", (
            "[0:0]settb=1/120000[s0];"
            "[s0]trim=end_pts=1499880:start_pts=1199880[s1];"
            "[s1]setpts=max(PTS-1200000\\,0)[s2];"
            "[s2]scale=h=1080:w=1920[s3];"
            "[s3]format=yuv420p[s4];"
            "[0:1]atrim=end=12.500000:start=10.000000[s5];"
            "[s5]asetpts=PTS-10.000000/TB[s6];"
            "[s6]aresample=async=1:first_pts=0[s7]"
        ),
        "-map", "[s4]", "-map", "[s7]", "-f", "mp4", "-ac", "2", "-ar", "48000", "-b:a", "160k",
        "-bsf:v", "setts=pts=PTS:dts=DTS:duration='min(DURATION,300000-PTS)'",
        "-c:a", "aac", "-c:v", "libx264", "-crf", "20", "-enc_time_base", "1/120000", "-fps_mode", "vfr", "-g", "120",
        *MP4_TAIL, "-preset", "veryfast", "-profile:v", "high", "-t", "2.500000", "-threads:v", "4",
        "-video_track_timescale", "120000", "file:/media/out.mp4", "-y",
    ]  # fmt: skip


def test_audio_clip_takes_no_picture():
    assert argv.audio_clip(FFMPEG, source(), ClipRange(0.0, 4.0), OUT, recipe()) == [
        *HEAD, "-copyts",
        "-format_whitelist", FORMATS, "-max_pixels", "36000000", "-noaccurate_seek",
        "-protocol_whitelist", "http,tcp", "-recv_buffer_size", "65536", "-use_mfra_for", "pts",
        "-i", "http://127.0.0.1:9/x",
        "-filter_complex", (
            "[0:1]atrim=end=4.000000:start=0.000000[s0];"
            "[s0]asetpts=PTS-0.000000/TB[s1];"
            "[s1]aresample=async=1:first_pts=0[s2]"
        ),
        "-map", "[s2]", "-f", "mp4", "-ac", "2", "-ar", "48000", "-b:a", "160k", "-c:a", "aac",
        *MP4_TAIL, "-t", "4.000000", "file:/media/out.mp4", "-y",
    ]  # fmt: skip


def test_source_without_sound_is_given_no_audio_codec():
    command = exact(source(audio=None))
    assert "-c:a" not in command
    assert command.count("-map") == 1


def test_seek_in_a_container_without_index_starts_before_any_usual_group_of_pictures():
    command = argv.exact_clip(FFMPEG, source(form="mpegts"), ClipRange(30.0, 31.0), OUT, recipe())
    assert value(command, "-ss") == "18.000000"
    assert "-use_mfra_for" not in command


def test_held_frame_is_let_through_and_shown_at_zero():
    filters = value(exact(source(), held_seconds=7.0), "-filter_complex")
    assert "start_pts=839880" in filters
    assert "setpts=max(PTS-1200000\\,0)" in filters


def test_surround_sound_of_an_odd_rate_becomes_what_browsers_play():
    command = exact(source(audio=AudioStream("ac3", 96_000, 6, index=1)))
    assert (value(command, "-ac"), value(command, "-ar")) == ("2", "48000")


def test_known_keyframe_is_where_decoding_starts():
    command = argv.exact_clip(FFMPEG, source(form="mpegts"), ClipRange(90.0, 91.0), OUT, recipe(keyframe_seconds=70.0))
    assert value(command, "-ss") == "69.000000"


def test_mastered_sound_takes_the_place_of_the_sources():
    sound = argv.MasteredSound(Path("/media/s.flac"), Gain((("volume", {"volume": "3dB"}),)))
    command = exact(source(), sound=sound)
    assert command.count("-i") == 2
    assert "[1:a:0]volume=volume=3dB" in value(command, "-filter_complex")
    assert "atrim=end=2.500000[" in value(command, "-filter_complex")
    assert "asetpts" not in value(command, "-filter_complex")


def test_frames_are_carried_to_the_device_that_encodes_them():
    command = exact(source(), encoder=ENCODERS["h264_vaapi"])
    assert value(command, "-init_hw_device") == "vaapi=hw"
    assert "format=nv12[s4];[s4]hwupload" in value(command, "-filter_complex")
    assert (value(command, "-c:v"), value(command, "-qp"), "-crf" in command) == ("h264_vaapi", "20", False)


@pytest.mark.parametrize(
    ("size", "rotation", "max_height", "expected"),
    [
        ((1920, 1080), 0, None, (1920, 1080)),
        ((1920, 1080), 0, 720, (1280, 720)),
        ((1920, 1080), 90, 720, (404, 720)),
        ((1920, 1080), 270, None, (1080, 1920)),
        ((640, 360), 180, 1080, (640, 360)),
        ((641, 361), 0, None, (640, 360)),
        ((853, 480), 0, 361, (640, 360)),
        ((4000, 3), 0, 2, (2666, 2)),
    ],
)
def test_size_is_upright_even_and_never_larger(size, rotation, max_height, expected):
    assert argv.target_size(VideoStream("h264", *size, 25.0, rotation), max_height) == expected


def test_page_is_timed_from_a_zero_of_its_own():
    page = page_times(ClipRange(4.0, 40.0), ClipRange(10.0, 12.5), 25.0)
    command = exact(source(audio=None), page=page)
    filters = value(command, "-filter_complex")
    assert "trim=end_pts=1499880:start_pts=1199880[" in filters
    assert "setpts=max(PTS-1199880\\,0)" in filters
    assert value(command, "-bsf:v") == "setts=pts=PTS:dts=DTS:duration='min(DURATION,3600120-PTS)'"
    assert (value(command, "-t"), value(command, "-movie_timescale")) == ("2.501000", "120000")


def test_first_page_is_timed_as_the_clip_is():
    page = page_times(ClipRange(10.0, 40.0), ClipRange(10.0, 12.5), 25.0)
    filters, whole = (value(exact(source(), page=each), "-filter_complex") for each in (page, None))
    assert filters == whole


def test_times_count_from_the_containers_start_whichever_tracks_are_needed():
    given = source(audio=None, form="mpegts")
    given = replace(given, probe=replace(given.probe, start_seconds=1.4))
    assert value(exact(given), "-itsoffset") == "-1.400000"
    assert "-itsoffset" not in exact(source())


def test_speech_is_what_recognizers_want():
    command = argv.speech(FFMPEG, source(), ClipRange(10.0, 12.5), Path("/media/s.wav"))
    assert command[command.index("-f") :] == [
        "-f", "wav", "-ac", "1", "-ar", "16000", "-c:a", "pcm_s16le", "-t", "2.500000", "file:/media/s.wav", "-y",
    ]  # fmt: skip
    assert "aresample=async=1:first_pts=0" in value(command, "-filter_complex")
