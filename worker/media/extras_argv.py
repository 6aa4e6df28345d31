"""The one ffmpeg run for everything that is made of a finished clip, as data."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import ffmpeg

from worker.domain.media import ClipFile, Mode
from worker.media.argv import (
    GAPLESS,
    SPEECH,
    compiled,
    encoded_video,
    for_encoder,
    from_time,
    in_seconds,
    mp4,
)
from worker.media.encoding import Encoding, VideoEncoder
from worker.media.fences import own_file
from worker.media.loudness import meter
from worker.media.sheet import Sheet

POSTER_WIDTH: Final = 1280
POSTER_SECONDS: Final = 0.2
#: a frame's time is rounded on its way through command lines
BEFORE_SECONDS: Final = 0.0005
JPEG: Final = {"f": "image2", "c:v": "mjpeg", "frames:v": 1, "update": 1}


@dataclass(frozen=True, slots=True)
class Poster:
    path: Path
    #: when its picture comes up
    at_seconds: float


@dataclass(frozen=True, slots=True)
class Rendition:
    path: Path
    height: int


@dataclass(frozen=True, slots=True)
class SpriteSheet:
    path: Path
    sheet: Sheet


@dataclass(frozen=True, slots=True)
class Extras:
    """What is to be made, and where."""

    poster: Poster | None = None
    sprite: SpriteSheet | None = None
    renditions: tuple[Rendition, ...] = field(default=())
    #: 16 kHz mono, for recognizers and waveforms
    speech: Path | None = None
    #: the meter's report
    loudness: Path | None = None

    def __bool__(self) -> bool:
        return any((self.poster, self.sprite, self.renditions, self.speech, self.loudness))


def make_extras(
    binary: Path, clip: ClipFile, extras: Extras, *, encoding: Encoding, encoder: VideoEncoder
) -> list[str]:
    """Pictures and sound are decoded once for all that needs all of them."""
    whole = ffmpeg.input(f"file:{clip.path}", **own_file())
    outputs = [_rendition(whole, clip, each, encoding, encoder) for each in extras.renditions]
    if extras.poster is not None:
        outputs.append(_poster(clip, extras.poster))
    if extras.sprite is not None:
        outputs.append(_sprite(whole, clip, extras.sprite))
        if not extras.sprite.sheet.by_keyframes:
            # a sheet is written at the end; without this ffmpeg would tell no progress, and be taken for hung
            outputs.append(ffmpeg.output(whole["v:0"], "-", f="null", c="copy"))
    if extras.speech is not None:
        outputs.append(_speech(whole, clip, extras.speech))
    if extras.loudness is not None:
        outputs.append(ffmpeg.output(meter(whole["a:0"], extras.loudness), "-", f="null"))
    setup = encoder.setup if extras.renditions else ()
    return compiled(binary, ffmpeg.merge_outputs(*outputs), *setup)


def _rendition(whole: Any, clip: ClipFile, wanted: Rendition, encoding: Encoding, encoder: VideoEncoder) -> Any:
    width = max(2, round(clip.width * wanted.height / clip.height / 2) * 2)
    picture = whole["v:0"].filter("scale", w=width, h=wanted.height).filter("setsar", 1)
    streams = [for_encoder(picture, encoder)]
    options = encoded_video(encoder, encoding, clip.duration_seconds)
    if clip.has_audio:
        streams.append(whole["a:0"])
        # all but copies have AAC already
        options |= {"c:a": "copy"} if clip.mode is not Mode.COPY else {"c:a": "aac", "b:a": encoding.audio_bitrate}
    return mp4(streams, wanted.path, **options)


def _poster(clip: ClipFile, poster: Poster) -> Any:
    """One JPEG, with square pixels and at most 1280 wide."""
    # without an end ffmpeg reads on for as long as its other outputs take
    piece = {**from_time(poster.at_seconds - BEFORE_SECONDS), "t": in_seconds(POSTER_SECONDS)}
    picture = (
        ffmpeg.input(f"file:{clip.path}", **own_file(), **piece)["v:0"]
        .filter("scale", w=f"trunc(min({POSTER_WIDTH},iw*sar)/2)*2", h="trunc(ow/dar/2)*2")
        .filter("setsar", 1)
        .filter("format", "yuvj420p")
    )
    return ffmpeg.output(picture, f"file:{poster.path}", **JPEG, **{"q:v": 3})


def _sprite(whole: Any, clip: ClipFile, wanted: SpriteSheet) -> Any:
    sheet = wanted.sheet
    if sheet.by_keyframes:
        whole = ffmpeg.input(f"file:{clip.path}", **own_file(), skip_frame="nokey")
    picture = (
        whole["v:0"]
        # a last picture that stands still is shown to the end
        .filter("tpad", stop_duration=in_seconds(clip.duration_seconds), stop_mode="clone")
        # rounded up, a picture's time shows what was on display then, not what comes next
        .filter("fps", fps=f"1000/{sheet.every_ms}", start_time=0, round="up")
        .filter("scale", w=sheet.tile_width, h=sheet.tile_height)
        .filter("setsar", 1)
        .filter("tile", f"{sheet.columns}x{sheet.rows}")
        .filter("format", "yuvj420p")
    )
    return ffmpeg.output(picture, f"file:{wanted.path}", **JPEG, **{"q:v": 5})


def _speech(whole: Any, clip: ClipFile, path: Path) -> Any:
    """Silence is kept where the clip's sound starts late, so that speech times are clip times."""
    sound = whole["a:0"].filter("aresample", **GAPLESS)
    return ffmpeg.output(sound, f"file:{path}", **SPEECH, t=in_seconds(clip.duration_seconds))
