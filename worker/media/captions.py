"""A clip with its captions: drawn into the picture, or as a track that players can switch on."""

import asyncio
import importlib.util
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import av
import ffmpeg

from worker.domain.captions import Cue, make_cues, to_srt
from worker.domain.media import ClipFile, Mode, Quality
from worker.domain.transcript import Transcript
from worker.errors import OutputCorrupt
from worker.media.argv import compiled, encoded_video, for_encoder, mp4
from worker.media.ass import Layout, to_ass
from worker.media.encoding import CPU, QUALITIES, Encoding, VideoEncoder, with_fallback
from worker.media.expectation import expect_same
from worker.media.failure import failure_of
from worker.media.fences import guards, own_file
from worker.media.iso639 import three_letters
from worker.media.process import Limits, run_child
from worker.media.progress import fractions_of
from worker.media.verify import verify_clip

#: the one font that is always there; libass falls back to the system's for scripts that it lacks
FONT_FILE: Final = "OpenSans-Regular.ttf"
#: names inside of `directory`: no path ever stands in a filter, where colons and quotes mean something
SCRIPT: Final = "captions.ass"
FONTS: Final = "fonts"


@dataclass(frozen=True, slots=True)
class Captioned:
    #: why the configured encoder was replaced by the processor; empty when it was not
    cpu_fallback: str = ""


class CaptionsMaker:
    def __init__(self, ffmpeg: Path, *, limits: Limits, encoder: VideoEncoder = CPU) -> None:
        self._ffmpeg = ffmpeg
        self._limits = limits
        self._encoder = encoder

    async def burn(
        self,
        clip: ClipFile,
        transcript: Transcript,
        path: Path,
        *,
        quality: Quality = Quality.GOOD,
        on_progress: Callable[[float], None] | None = None,
    ) -> Captioned:
        """The same clip, frame by frame, with captions in its pictures; `path` lies in a directory of the job's own."""
        layout = Layout(clip.width, clip.height)
        cues = await asyncio.to_thread(
            make_cues, transcript, until_seconds=clip.duration_seconds, line_columns=layout.line_columns
        )
        directory = path.parent / f"{path.stem}-captions"
        await asyncio.to_thread(_write_script, directory, to_ass(cues, layout))

        async def run(encoder: VideoEncoder) -> Captioned:
            command = burn_argv(self._ffmpeg, clip, path, encoding=QUALITIES[quality], encoder=encoder)
            limits = encoder.limits(self._limits)
            told = fractions_of(on_progress, clip.duration_seconds)
            result = await run_child(command, limits=limits, on_progress=told, directory=directory)
            if failure := encoder.failure(result, limits):
                raise failure
            await _verify_pictures(clip, path)
            return Captioned()

        made, reason = await with_fallback(self._encoder, run)
        return Captioned(reason) if reason else made

    async def add_track(self, clip: ClipFile, transcript: Transcript, path: Path) -> None:
        """The same clip, bit by bit, with a subtitle track beside its picture and sound."""
        cues = await asyncio.to_thread(make_cues, transcript, until_seconds=clip.duration_seconds)
        captions = path.with_suffix(".track.srt")
        await asyncio.to_thread(captions.write_text, to_srt(cues), encoding="utf-8")
        command = track_argv(self._ffmpeg, clip, captions, path, language=transcript.language)
        result = await run_child(command, limits=self._limits)
        if failure := failure_of(result, self._limits):
            raise failure
        await _verify_pictures(clip, path)
        await asyncio.to_thread(_verify_track, path, cues)


def burn_argv(binary: Path, clip: ClipFile, path: Path, *, encoding: Encoding, encoder: VideoEncoder) -> list[str]:
    whole = ffmpeg.input(f"file:{clip.path}", **own_file())
    picture = (
        whole["v:0"]
        .filter("scale", w=_even(clip.width), h=_even(clip.height))
        .filter("setsar", 1)
        .filter("ass", filename=SCRIPT, fontsdir=FONTS)
    )
    streams = [for_encoder(picture, encoder)]
    options = encoded_video(encoder, encoding, clip.duration_seconds)
    if clip.has_audio:
        streams.append(whole["a:0"])
        # all but copies have AAC already
        options |= {"c:a": "copy"} if clip.mode is not Mode.COPY else {"c:a": "aac", "b:a": encoding.audio_bitrate}
    return compiled(binary, mp4(streams, path, **options), *encoder.setup)


def track_argv(binary: Path, clip: ClipFile, captions: Path, path: Path, *, language: str) -> list[str]:
    whole = ffmpeg.input(f"file:{clip.path}", **own_file())
    text: Any = ffmpeg.input(f"file:{captions}", f="srt", **guards(("file",), ("srt",)))
    streams = [whole["v:0"], *([whole["a:0"]] if clip.has_audio else []), text["s:0"]]
    track: dict[str, Any] = {
        "c:s": "mov_text",
        "metadata:s:s:0": f"language={three_letters(language)}",
        "disposition:s:0": "default",
    }
    return compiled(binary, mp4(streams, path, **{"c:v": "copy", "c:a": "copy", **track}))


def _write_script(directory: Path, script: str) -> None:
    fonts = directory / FONTS
    fonts.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(_font(), fonts / FONT_FILE)
    (directory / SCRIPT).write_text(script, encoding="utf-8")


def _font() -> Path:
    # found, not imported: the package does work when it is
    spec = importlib.util.find_spec("ttf_opensans")
    assert spec is not None, "it is a dependency"
    assert spec.origin is not None, "it is installed as files"
    return Path(spec.origin).parent / "ttf" / FONT_FILE


async def _verify_pictures(clip: ClipFile, path: Path) -> None:
    facts = await verify_clip(path, expect_same(clip))
    if facts.frames != clip.frames:
        raise OutputCorrupt(f"{path.name} has {facts.frames} frames instead of {clip.frames}")


def _verify_track(path: Path, cues: Sequence[Cue]) -> None:
    try:
        with av.open(f"file:{path}", options={"protocol_whitelist": "file"}) as container:
            # between two cues lies an empty one
            texts = [bytes(packet)[2:] for packet in container.demux(subtitles=0) if packet.size > 2]
    except (av.FFmpegError, IndexError) as exc:
        raise OutputCorrupt(f"{path.name} has no subtitle track that can be read") from exc
    if len(texts) != len(cues):
        raise OutputCorrupt(f"{path.name} shows {len(texts)} captions instead of {len(cues)}")


def _even(pixels: int) -> int:
    return max(2, pixels // 2 * 2)
