"""ffmpeg command lines as data: what is asked of ffmpeg is decided here and nothing is run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import ffmpeg

from worker.domain.media import AudioStream, ClipRange, Probe, VideoStream
from worker.media.timeline import TICKS_PER_SECOND, first_tick, past_last_tick, start_tick

#: containers that name no other file; playlists, concat scripts and SDP would read whatever they name
FORMATS: Final = ("mov", "matroska", "mpegts", "mp3", "aac", "ogg", "wav", "flac", "avi", "flv")
#: 8192 x 4320; a 390 KB file may claim a frame that takes gigabytes to decode
MAX_PIXELS: Final = 36_000_000
#: AAC needs its previous packet to sound right, so decoding starts a little before the first wanted sample
PREROLL_SECONDS: Final = 0.2
#: MPEG-TS has no index: a seek lands between keyframes, and decoding must start before the next one
PREROLL_UNINDEXED_SECONDS: Final = 12.0
#: what browsers are sure to play
SAMPLE_RATES: Final = (44_100, 48_000)
POSTER_WIDTH: Final = 1280
SPEECH_SAMPLE_RATE: Final = 16_000


@dataclass(frozen=True, slots=True)
class Encoding:
    """Visually lossless and quick; more threads would gain little and starve the jobs beside this one."""

    preset: str = "veryfast"
    crf: int = 20
    threads: int = 4
    #: a keyframe at least this often, so that players seek quickly
    gop_frames: int = 120
    audio_bitrate: str = "160k"


@dataclass(frozen=True, slots=True)
class ClipInput:
    """What stands after `-i` and what reading it may touch."""

    url: str
    protocols: Sequence[str]
    probe: Probe


def exact_clip(
    binary: Path,
    source: ClipInput,
    wanted: ClipRange,
    output: Path,
    *,
    max_height: int | None,
    encoding: Encoding,
    held_seconds: float | None = None,
) -> list[str]:
    """Every frame with start ≤ pts < end, re-encoded with its own timestamp; the clip's zero is `start`.

    `held_seconds` is when a frame came up that is still on display at `start`: the clip then opens with it.
    """
    opened = _seek(source, wanted.start_seconds if held_seconds is None else held_seconds)
    streams, options = [], dict[str, Any]()
    if (video := source.probe.video) is not None:
        picture = _exact_video(opened, video, wanted, held_seconds)
        streams.append(_sized(picture, *target_size(video, max_height)))
        options |= _x264(encoding, wanted.duration_seconds)
    if (audio := source.probe.audio) is not None:
        streams.append(_exact_audio(opened, audio, wanted))
        options |= _aac(audio, encoding)
    written = _mp4(streams, output, duration_seconds=wanted.duration_seconds, **options)
    return _compile(binary, written, *_CONTAINER_TIME)


def audio_clip(binary: Path, source: ClipInput, wanted: ClipRange, output: Path, *, encoding: Encoding) -> list[str]:
    """The sound of start ≤ t < end, to the sample, as AAC in an MP4 container."""
    audio = source.probe.audio
    assert audio is not None, "an audio clip needs a source with sound"
    stream = _exact_audio(_seek(source, wanted.start_seconds), audio, wanted)
    written = _mp4([stream], output, duration_seconds=wanted.duration_seconds, **_aac(audio, encoding))
    return _compile(binary, written, *_CONTAINER_TIME)


def copy_clip(binary: Path, source: ClipInput, wanted: ClipRange, output: Path) -> list[str]:
    """Packets as they are. `wanted` must start on a keyframe, or earlier pictures stay hidden in the file."""
    opened = ffmpeg.input(source.url, **_reading(source), **_from(wanted.start_seconds))
    streams, options = [], dict[str, Any]()
    if (video := source.probe.video) is not None:
        streams.append(opened[_selector("v", video.index)])
        # Apple players know HEVC in MP4 only by this name
        options |= {"tag:v": "hvc1"} if video.codec == "hevc" else {}
    if (audio := source.probe.audio) is not None:
        streams.append(opened[_selector("a", audio.index)])
    return _compile(
        binary,
        _mp4(
            streams,
            output,
            duration_seconds=wanted.duration_seconds,
            c="copy",
            **options,
        ),
        # ffmpeg ends with 0 when a copied source breaks off
        "-xerror",
    )


def poster(binary: Path, clip: Path, output: Path, *, at_seconds: float) -> list[str]:
    """One JPEG of the picture shown at `at_seconds`, with square pixels and at most 1280 wide."""
    picture = (
        ffmpeg.input(f"file:{clip}", **_reading_own(), **_from(at_seconds))["v:0"]
        .filter("scale", w=f"trunc(min({POSTER_WIDTH},iw*sar)/2)*2", h="trunc(ow/dar/2)*2")
        .filter("setsar", 1)
        .filter("format", "yuvj420p")
    )
    written = ffmpeg.output(
        picture, f"file:{output}", **{"f": "image2", "c:v": "mjpeg", "q:v": 3, "frames:v": 1, "update": 1}
    )
    return _compile(binary, written)


def speech_wav(binary: Path, clip: Path, output: Path, *, duration_seconds: float) -> list[str]:
    """16 kHz mono, silence kept where the clip's sound starts late, so that speech times are clip times."""
    sound = ffmpeg.input(f"file:{clip}", **_reading_own())["a:0"].filter("aresample", **_GAPLESS)
    written = ffmpeg.output(
        sound,
        f"file:{output}",
        **{
            "f": "wav",
            "c:a": "pcm_s16le",
            "ac": 1,
            "ar": SPEECH_SAMPLE_RATE,
            "t": _seconds(duration_seconds),
        },
    )
    return _compile(binary, written)


def target_size(video: VideoStream, max_height: int | None) -> tuple[int, int]:
    """Width and height of the clip as shown: upright, even for 4:2:0, never larger than the source."""
    width, height = video.width, video.height
    if video.rotation % 180 == 90:
        width, height = height, width
    if max_height is not None and height > max_height:
        limit = max(2, max_height - max_height % 2)
        width, height = round(width * limit / height), limit
    return max(2, width - width % 2), max(2, height - height % 2)


#: timestamps stay the source's own, counted from the container's start
_CONTAINER_TIME: Final = ("-copyts", "-start_at_zero")
#: silence for what is missing at the start and in gaps; never stretches sound
_GAPLESS: Final = {"async": 1, "first_pts": 0}


def _exact_video(opened: Any, video: VideoStream, wanted: ClipRange, held_seconds: float | None) -> Any:
    first = wanted.start_seconds if held_seconds is None else held_seconds
    return (
        opened[_selector("v", video.index)]
        .filter("settb", f"1/{TICKS_PER_SECOND}")
        .filter(
            "trim",
            start_pts=first_tick(first, video.fps),
            end_pts=past_last_tick(wanted.end_seconds, video.fps),
        )
        .filter("setpts", f"max(PTS-{start_tick(wanted.start_seconds)},0)")
    )


def _sized(picture: Any, width: int, height: int) -> Any:
    return picture.filter("scale", w=width, h=height).filter("format", "yuv420p")


def _exact_audio(opened: Any, audio: AudioStream, wanted: ClipRange) -> Any:
    start, end = _seconds(wanted.start_seconds), _seconds(wanted.end_seconds)
    return (
        opened[_selector("a", audio.index)]
        .filter("atrim", start=start, end=end)
        .filter("asetpts", f"PTS-{start}/TB")
        .filter("aresample", **_GAPLESS)
    )


def _x264(encoding: Encoding, duration_seconds: float) -> dict[str, Any]:
    return {
        "c:v": "libx264",
        "preset": encoding.preset,
        "crf": encoding.crf,
        "profile:v": "high",
        "g": encoding.gop_frames,
        "threads:v": encoding.threads,
        # each frame keeps its own time; on a coarser clock ffmpeg would drop or double some
        "fps_mode": "vfr",
        "enc_time_base": f"1/{TICKS_PER_SECOND}",
        "video_track_timescale": TICKS_PER_SECOND,
        # a still picture's last frame would be shown beyond the end, for as long as the source shows it
        "bsf:v": f"setts=pts=PTS:dts=DTS:duration='min(DURATION,{start_tick(duration_seconds)}-PTS)'",
    }


def _aac(audio: AudioStream, encoding: Encoding) -> dict[str, Any]:
    rate = audio.sample_rate if audio.sample_rate in SAMPLE_RATES else SAMPLE_RATES[-1]
    return {"c:a": "aac", "b:a": encoding.audio_bitrate, "ar": rate, "ac": min(audio.channels, 2) or 2}


def _seek(source: ClipInput, first_seconds: float) -> Any:
    preroll = PREROLL_UNINDEXED_SECONDS if source.probe.format == "mpegts" else PREROLL_SECONDS
    # the filters cut: ffmpeg's own trimming rounds to the stream's clock and counts from the first frame it meets
    return ffmpeg.input(source.url, **_reading(source), **_from(first_seconds - preroll), noaccurate_seek=None)


def _from(seconds: float) -> dict[str, Any]:
    # even a seek to 0 may skip packets
    return {"ss": _seconds(seconds)} if seconds > 0 else {}


def _reading(source: ClipInput) -> dict[str, Any]:
    # without it a seek in a fragmented file reads every fragment before the target
    index = {"use_mfra_for": "pts"} if "mov" in source.probe.format.split(",") else {}
    return {**_guards(source.protocols), **index}


def _reading_own() -> dict[str, Any]:
    return _guards(("file",))


def _guards(protocols: Sequence[str]) -> dict[str, Any]:
    return {
        "protocol_whitelist": ",".join(protocols),
        "format_whitelist": ",".join(FORMATS),
        "max_pixels": MAX_PIXELS,
    }


def _mp4(streams: list[Any], output: Path, *, duration_seconds: float, **options: Any) -> Any:
    return ffmpeg.output(
        *streams,
        f"file:{output}",
        **options,
        f="mp4",
        t=_seconds(duration_seconds),
        movflags="+faststart",
        # a clip must not carry the source's location, owner or chapters
        map_metadata=-1,
        map_chapters=-1,
    )


def _selector(kind: str, index: int | None) -> str:
    return f"{kind}:0" if index is None else str(index)


def _seconds(value: float) -> str:
    """Microseconds are ffmpeg's own resolution; exponents are not its language."""
    return f"{value:.6f}"


def _compile(binary: Path, output: Any, *more: str) -> list[str]:
    quiet = ["-nostdin", "-hide_banner", "-loglevel", "error", "-nostats"]
    told = ["-progress", "pipe:1", "-stats_period", "0.2"]
    argv: list[str] = ffmpeg.compile(output, cmd=[str(binary), *quiet, *told, *more], overwrite_output=True)
    return argv
