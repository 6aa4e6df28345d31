"""A span's sound for recognizers, straight from the source: as long as the span, whatever the source has of it."""

import asyncio
import wave
from pathlib import Path
from typing import Final

from worker.domain.media import ClipRange, Probe
from worker.errors import OutputCorrupt
from worker.media import argv
from worker.media.borders import look_around
from worker.media.expectation import TOLERANCE_SECONDS
from worker.media.failure import failure_of
from worker.media.page_ends import earliest_end
from worker.media.process import Limits, run_child
from worker.media.source import ReadableSource
from worker.media.timeline import start_tick

SAMPLE_BYTES: Final = 2
#: of silence that is written at once
PIECE_SAMPLES: Final = 1 << 16


class SpeechCutter:
    def __init__(self, ffmpeg: Path, *, limits: Limits) -> None:
        self._ffmpeg = ffmpeg
        self._limits = limits

    async def cut(self, source: ReadableSource, probe: Probe, span: ClipRange, path: Path) -> None:
        """Silence stands for what the source does not have, never for what could not be read of it."""
        given = argv.ClipInput(source.input, source.protocols, probe, source.formats, source.late_seek_seconds)
        result = await run_child(argv.speech(self._ffmpeg, given, span, path), limits=self._limits)
        if failure := source.failure() or failure_of(result, self._limits):
            raise failure
        wanted = round(span.duration_seconds * argv.SPEECH_SAMPLE_RATE)
        have = await asyncio.to_thread(_count, path)
        if have < wanted:
            missing_from = span.start_seconds + have / argv.SPEECH_SAMPLE_RATE
            if missing_from < span.end_seconds - TOLERANCE_SECONDS:
                await refuse_lost_sound(source, probe, ClipRange(missing_from, span.end_seconds))
            await asyncio.to_thread(_lengthen, path, wanted - have)


async def refuse_lost_sound(source: ReadableSource, probe: Probe, missing: ClipRange) -> None:
    """Sound may end before pictures do; only the source tells whether there is more of it."""
    (end,) = await look_around(source, probe, [start_tick(missing.end_seconds)], of_sound=True)
    last = end.before_seconds
    if last is not None and last > missing.start_seconds + TOLERANCE_SECONDS:
        raise OutputCorrupt(
            f"the sound of {source.label} broke off at {missing.start_seconds:.3f} s, "
            f"though there is more at {last:.3f} s"
        )
    if end.reached_seconds < earliest_end(probe, missing.end_seconds):
        raise OutputCorrupt(f"{source.label} ends at {end.reached_seconds:.3f} s, before {missing.end_seconds:.3f} s")


def _count(path: Path) -> int:
    try:
        with wave.open(str(path), "rb") as sound:
            return sound.getnframes()
    except (OSError, EOFError, wave.Error) as exc:
        raise OutputCorrupt(f"{path.name} holds no sound") from exc


def _lengthen(path: Path, samples: int) -> None:
    """The whole file is written anew: its header may hold more than what is known here."""
    longer = path.with_name(f"{path.name}.longer")
    with wave.open(str(path), "rb") as sound, wave.open(str(longer), "wb") as written:
        written.setparams(sound.getparams())
        while piece := sound.readframes(PIECE_SAMPLES):
            written.writeframesraw(piece)
        for at in range(0, samples, PIECE_SAMPLES):
            written.writeframesraw(bytes(SAMPLE_BYTES * min(PIECE_SAMPLES, samples - at)))
    longer.replace(path)
