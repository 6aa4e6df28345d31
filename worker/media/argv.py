"""ffmpeg command lines as data: what is asked of ffmpeg is decided here and nothing is run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import ffmpeg

from worker.domain.media import AudioStream, ClipRange, Probe, VideoStream
from worker.media.encoding import Encoding, VideoEncoder
from worker.media.fences import SAMPLE_RATES, guards, own_file
from worker.media.loudness import Gain, meter
from worker.media.source import PLAIN_FORMATS
from worker.media.timeline import MARGIN_SECONDS, TICKS_PER_SECOND, PageTimes, first_tick, past_last_tick, start_tick

#: AAC needs its previous packet to sound right, so decoding starts a little before the first wanted sample
PREROLL_SECONDS: Final = 0.2
#: MPEG-TS has no index: a seek lands between keyframes, and decoding must start before the next one
PREROLL_UNINDEXED_SECONDS: Final = 12.0
#: as recognizers want sound
SPEECH_SAMPLE_RATE: Final = 16_000
SPEECH: Final = {"f": "wav", "c:a": "pcm_s16le", "ac": 1, "ar": SPEECH_SAMPLE_RATE}
#: a keyframe that is known is reached from a little before it
PREROLL_KEYFRAME_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class ClipInput:
    """What stands after `-i` and what reading it may touch."""

    url: str
    protocols: Sequence[str]
    probe: Probe
    formats: Sequence[str] = PLAIN_FORMATS
    late_seek_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class MasteredSound:
    """The range's sound in a file of its own, cut to the sample and not yet coded, and what shall be done to it."""

    path: Path
    gain: Gain


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is made of a range."""

    encoding: Encoding
    encoder: VideoEncoder
    max_height: int | None = None
    #: instead of the source's own
    sound: MasteredSound | None = None
    #: a finished clip to take them from
    pictures: Path | None = None
    #: when a frame came up that is still on display at the start: the clip then opens with it
    held_seconds: float | None = None
    #: the keyframe that decoding starts from, where the container's index does not tell
    keyframe_seconds: float | None = None
    #: of a page of a clip, that is joined with others later
    page: PageTimes | None = None


def exact_clip(binary: Path, source: ClipInput, wanted: ClipRange, output: Path, recipe: Recipe) -> list[str]:
    """Every frame with start ≤ pts < end, re-encoded with its own timestamp; the clip's zero is `start`."""
    first = wanted.start_seconds if recipe.held_seconds is None else recipe.held_seconds
    opened = _seek(source, first, recipe.keyframe_seconds)
    streams, options = [], dict[str, Any]()
    if (video := source.probe.video) is not None:
        picture = _exact_video(opened, video, wanted, recipe)
        picture = picture.filter("scale", **dict(zip("wh", target_size(video, recipe.max_height), strict=True)))
        streams.append(for_encoder(picture, recipe.encoder))
        options |= encoded_video(recipe.encoder, recipe.encoding, _lasting_seconds(wanted, recipe.page))
        options |= {} if recipe.page is None else _PAGE_TIME
    if (audio := source.probe.audio) is not None:
        streams.append(_sound(opened, audio, wanted, recipe))
        options |= aac(audio, recipe.encoding)
    # the filters cut to the frame, this only bounds; a page's zero lies a margin before its start
    bound = wanted.duration_seconds if recipe.page is None else recipe.page.past_seconds + MARGIN_SECONDS
    written = mp4(streams, output, duration_seconds=bound, **options)
    return compiled(binary, written, *_CONTAINER_TIME, *recipe.encoder.setup)


def audio_clip(binary: Path, source: ClipInput, wanted: ClipRange, output: Path, recipe: Recipe) -> list[str]:
    """The sound of start ≤ t < end, to the sample, as AAC in an MP4 container."""
    audio = source.probe.audio
    assert audio is not None, "an audio clip needs a source with sound"
    stream = _sound(_seek(source, wanted.start_seconds), audio, wanted, recipe)
    written = mp4([stream], output, duration_seconds=wanted.duration_seconds, **aac(audio, recipe.encoding))
    return compiled(binary, written, *_CONTAINER_TIME)


def sound_master(binary: Path, source: ClipInput, wanted: ClipRange, output: Path, *, report: Path) -> list[str]:
    """The range's sound without loss, and how loud it is."""
    audio = source.probe.audio
    assert audio is not None, "there is sound to be measured"
    sound = meter(_exact_audio(_seek(source, wanted.start_seconds), audio, wanted), report)
    lossless = {"f": "flac", "c:a": "flac", "sample_fmt": "s32", "compression_level": 0}
    written = ffmpeg.output(sound, f"file:{output}", **lossless, ar=sample_rate(audio), ac=_channels(audio))
    return compiled(binary, written, *_CONTAINER_TIME)


def speech(binary: Path, source: ClipInput, wanted: ClipRange, output: Path) -> list[str]:
    """The range's sound for recognizers, with silence where it starts late and in gaps."""
    audio = source.probe.audio
    assert audio is not None, "there is sound to be understood"
    sound = _exact_audio(_seek(source, wanted.start_seconds), audio, wanted)
    written = ffmpeg.output(sound, f"file:{output}", **SPEECH, t=in_seconds(wanted.duration_seconds))
    return compiled(binary, written, *_CONTAINER_TIME)


def joined(binary: Path, source: ClipInput, wanted: ClipRange, output: Path, recipe: Recipe) -> list[str]:
    """The pictures of a finished clip as they are, with the mastered sound of `source`."""
    audio = source.probe.audio
    assert audio is not None, "there is nothing to join"
    assert recipe.sound is not None, "there is nothing to join"
    assert recipe.pictures is not None, "there is nothing to join"
    pictures = ffmpeg.input(f"file:{recipe.pictures}", **own_file())["v:0"]
    sound = _mastered(recipe.sound, wanted.duration_seconds)
    options = {"c:v": "copy", **aac(audio, recipe.encoding)}
    return compiled(binary, mp4([pictures, sound], output, **options), "-copyts", "-xerror")


def target_size(video: VideoStream, max_height: int | None) -> tuple[int, int]:
    """Width and height of the clip as shown: upright, even for 4:2:0, never larger than the source."""
    width, height = video.width, video.height
    if video.rotation % 180 == 90:
        width, height = height, width
    if max_height is not None and height > max_height:
        limit = max(2, max_height - max_height % 2)
        width, height = round(width * limit / height), limit
    return max(2, width - width % 2), max(2, height - height % 2)


#: timestamps stay the source's own
_CONTAINER_TIME: Final = ("-copyts",)
#: silence for what is missing at the start and in gaps; never stretches sound
GAPLESS: Final = {"async": 1, "first_pts": 0}


#: an MP4 file tells only on this clock when its first picture comes up; in milliseconds it would be rounded
_PAGE_TIME: Final = {"movie_timescale": TICKS_PER_SECOND}


def _lasting_seconds(wanted: ClipRange, page: PageTimes | None) -> float:
    return wanted.duration_seconds if page is None else page.lasting_seconds


def _exact_video(opened: Any, video: VideoStream, wanted: ClipRange, recipe: Recipe) -> Any:
    first = wanted.start_seconds if recipe.held_seconds is None else recipe.held_seconds
    zero = start_tick(wanted.start_seconds) if recipe.page is None else recipe.page.zero_tick
    return (
        opened[_selector("v", video.index)]
        .filter("settb", f"1/{TICKS_PER_SECOND}")
        .filter(
            "trim",
            start_pts=first_tick(first, video.fps),
            end_pts=past_last_tick(wanted.end_seconds, video.fps),
        )
        .filter("setpts", f"max(PTS-{zero},0)")
    )


def for_encoder(picture: Any, encoder: VideoEncoder) -> Any:
    """As the encoder takes it."""
    picture = picture.filter("format", encoder.pixel_format)
    return picture.filter("hwupload") if encoder.device else picture


def _sound(opened: Any, audio: AudioStream, wanted: ClipRange, recipe: Recipe) -> Any:
    if recipe.sound is not None:
        return _mastered(recipe.sound, wanted.duration_seconds)
    return _exact_audio(opened, audio, wanted)


def _mastered(sound: MasteredSound, duration_seconds: float) -> Any:
    stream = ffmpeg.input(f"file:{sound.path}", **own_file())["a:0"]
    for name, options in sound.gain.filters:
        stream = stream.filter(name, **options)
    # some filters fill up their last block
    return stream.filter("atrim", end=in_seconds(duration_seconds))


def _exact_audio(opened: Any, audio: AudioStream, wanted: ClipRange) -> Any:
    start, end = in_seconds(wanted.start_seconds), in_seconds(wanted.end_seconds)
    return (
        opened[_selector("a", audio.index)]
        .filter("atrim", start=start, end=end)
        .filter("asetpts", f"PTS-{start}/TB")
        .filter("aresample", **GAPLESS)
    )


def encoded_video(encoder: VideoEncoder, encoding: Encoding, duration_seconds: float) -> dict[str, Any]:
    return {
        **encoder.arguments(encoding),
        # each frame keeps its own time; on a coarser clock ffmpeg would drop or double some
        "fps_mode": "vfr",
        "enc_time_base": f"1/{TICKS_PER_SECOND}",
        "video_track_timescale": TICKS_PER_SECOND,
        # a still picture's last frame would be shown beyond the end, for as long as the source shows it
        "bsf:v": f"setts=pts=PTS:dts=DTS:duration='min(DURATION,{start_tick(duration_seconds)}-PTS)'",
    }


def aac(audio: AudioStream, encoding: Encoding) -> dict[str, Any]:
    return {"c:a": "aac", "b:a": encoding.audio_bitrate, "ar": sample_rate(audio), "ac": _channels(audio)}


def sample_rate(audio: AudioStream) -> int:
    return audio.sample_rate if audio.sample_rate in SAMPLE_RATES else SAMPLE_RATES[-1]


def _channels(audio: AudioStream) -> int:
    return min(audio.channels, 2) or 2


def _seek(source: ClipInput, first_seconds: float, keyframe_seconds: float | None = None) -> Any:
    preroll = PREROLL_UNINDEXED_SECONDS if source.probe.format == "mpegts" else PREROLL_SECONDS
    preroll += source.late_seek_seconds
    if keyframe_seconds is not None:
        first_seconds, preroll = min(first_seconds, keyframe_seconds), PREROLL_KEYFRAME_SECONDS
    # the filters cut: ffmpeg's own trimming rounds to the stream's clock and counts from the first frame it meets
    return ffmpeg.input(source.url, **_reading(source), **from_time(first_seconds - preroll), noaccurate_seek=None)


def from_time(seconds: float) -> dict[str, Any]:
    # even a seek to 0 may skip packets
    return {"ss": in_seconds(seconds)} if seconds > 0 else {}


def _reading(source: ClipInput) -> dict[str, Any]:
    # without it a seek in a fragmented file reads every fragment before the target
    index = {"use_mfra_for": "pts"} if "mov" in source.probe.format.split(",") else {}
    # counted from the container's start; left to itself, ffmpeg counts from the first of the tracks that it needs
    start = source.probe.start_seconds
    zero = {"itsoffset": in_seconds(-start)} if start else {}
    return {**guards(source.protocols, source.formats), **index, **zero}


def mp4(streams: list[Any], output: Path, *, duration_seconds: float | None = None, **options: Any) -> Any:
    bounded = {} if duration_seconds is None else {"t": in_seconds(duration_seconds)}
    return ffmpeg.output(
        *streams,
        f"file:{output}",
        **options,
        **bounded,
        f="mp4",
        movflags="+faststart",
        # a clip must not carry the source's location, owner or chapters
        map_metadata=-1,
        map_chapters=-1,
    )


def _selector(kind: str, index: int | None) -> str:
    return f"{kind}:0" if index is None else str(index)


def in_seconds(value: float) -> str:
    """Microseconds are ffmpeg's own resolution; exponents are not its language."""
    return f"{value:.6f}"


def compiled(binary: Path, output: Any, *more: str) -> list[str]:
    quiet = ["-nostdin", "-hide_banner", "-loglevel", "error", "-nostats"]
    told = ["-progress", "pipe:1", "-stats_period", "0.2"]
    argv: list[str] = ffmpeg.compile(output, cmd=[str(binary), *quiet, *told, *more], overwrite_output=True)
    return argv
