from pathlib import Path

import pytest

from worker.domain.media import AudioStream, ClipRange, Probe, VideoStream
from worker.media import argv

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


def exact(given: argv.ClipInput, **options: object) -> list[str]:
    arguments = {"max_height": None, "encoding": argv.Encoding(), **options}
    return argv.exact_clip(FFMPEG, given, ClipRange(10.0, 12.5), OUT, **arguments)  # type: ignore[arg-type]


def value(command: list[str], option: str) -> str:
    return command[command.index(option) + 1]


def test_exact_clip_is_cut_by_filters_on_the_containers_timeline():
    assert exact(source()) == [
        *HEAD, "-copyts", "-start_at_zero",
        "-format_whitelist", FORMATS, "-max_pixels", "36000000", "-noaccurate_seek",
        "-protocol_whitelist", "http,tcp", "-ss", "9.800000", "-use_mfra_for", "pts",
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


def test_copy_clip_starts_at_the_keyframe_and_stops_on_errors():
    assert argv.copy_clip(FFMPEG, source(), ClipRange(8.0, 12.0), OUT) == [
        *HEAD, "-xerror",
        "-format_whitelist", FORMATS, "-max_pixels", "36000000",
        "-protocol_whitelist", "http,tcp", "-ss", "8.000000", "-use_mfra_for", "pts",
        "-i", "http://127.0.0.1:9/x",
        "-map", "0:0", "-map", "0:1", "-f", "mp4", "-c", "copy",
        *MP4_TAIL, "-t", "4.000000", "file:/media/out.mp4", "-y",
    ]  # fmt: skip


def test_audio_clip_takes_no_picture():
    assert argv.audio_clip(FFMPEG, source(), ClipRange(0.0, 4.0), OUT, encoding=argv.Encoding()) == [
        *HEAD, "-copyts", "-start_at_zero",
        "-format_whitelist", FORMATS, "-max_pixels", "36000000", "-noaccurate_seek",
        "-protocol_whitelist", "http,tcp", "-use_mfra_for", "pts",
        "-i", "http://127.0.0.1:9/x",
        "-filter_complex", (
            "[0:1]atrim=end=4.000000:start=0.000000[s0];"
            "[s0]asetpts=PTS-0.000000/TB[s1];"
            "[s1]aresample=async=1:first_pts=0[s2]"
        ),
        "-map", "[s2]", "-f", "mp4", "-ac", "2", "-ar", "48000", "-b:a", "160k", "-c:a", "aac",
        *MP4_TAIL, "-t", "4.000000", "file:/media/out.mp4", "-y",
    ]  # fmt: skip


def test_poster_is_one_picture_with_square_pixels():
    assert argv.poster(FFMPEG, OUT, Path("/media/p.jpg"), at_seconds=1.5) == [
        *HEAD,
        "-format_whitelist", FORMATS, "-max_pixels", "36000000", "-protocol_whitelist", "file", "-ss", "1.500000",
        "-i", "file:/media/out.mp4",
        "-filter_complex", (
            "[0:v:0]scale=h=trunc(ow/dar/2)*2:w=trunc(min(1280\\,iw*sar)/2)*2[s0];"
            "[s0]setsar=1[s1];"
            "[s1]format=yuvj420p[s2]"
        ),
        "-map", "[s2]", "-f", "image2", "-c:v", "mjpeg", "-frames:v", "1", "-q:v", "3", "-update", "1",
        "file:/media/p.jpg", "-y",
    ]  # fmt: skip


def test_speech_is_mono_wav_on_the_clips_timeline():
    assert argv.speech_wav(FFMPEG, OUT, Path("/media/s.wav"), duration_seconds=2.5) == [
        *HEAD,
        "-format_whitelist", FORMATS, "-max_pixels", "36000000", "-protocol_whitelist", "file",
        "-i", "file:/media/out.mp4",
        "-filter_complex", "[0:a:0]aresample=async=1:first_pts=0[s0]",
        "-map", "[s0]", "-f", "wav", "-ac", "1", "-ar", "16000", "-c:a", "pcm_s16le", "-t", "2.500000",
        "file:/media/s.wav", "-y",
    ]  # fmt: skip


def test_source_without_sound_is_given_no_audio_codec():
    command = exact(source(audio=None))
    assert "-c:a" not in command
    assert command.count("-map") == 1


def test_seek_in_a_container_without_index_starts_before_any_usual_group_of_pictures():
    command = argv.exact_clip(
        FFMPEG, source(form="mpegts"), ClipRange(30.0, 31.0), OUT, max_height=None, encoding=argv.Encoding()
    )
    assert value(command, "-ss") == "18.000000"
    assert "-use_mfra_for" not in command


def test_held_frame_is_let_through_and_shown_at_zero():
    filters = value(exact(source(), held_seconds=7.0), "-filter_complex")
    assert "start_pts=839880" in filters
    assert "setpts=max(PTS-1200000\\,0)" in filters


def test_surround_sound_of_an_odd_rate_becomes_what_browsers_play():
    command = exact(source(audio=AudioStream("ac3", 96_000, 6, index=1)))
    assert (value(command, "-ac"), value(command, "-ar")) == ("2", "48000")


def test_copied_hevc_gets_the_name_apple_players_know():
    command = argv.copy_clip(FFMPEG, source(VideoStream("hevc", 64, 64, 25.0)), ClipRange(0, 1), OUT)
    assert value(command, "-tag:v") == "hvc1"


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
