"""From a recording to a transcript: find the speech, have an engine hear it window by window, stitch what it heard."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from worker.asr.base import Engine, Heard, Window
from worker.asr.process import SpeechProcess
from worker.domain.estimating import spread
from worker.domain.loops import without_loop
from worker.domain.stitching import Piece, stitch
from worker.domain.transcript import Segment, Transcript, Word, moved

#: ISO 639 for "undetermined"
UNDETERMINED: Final = "und"


class Recognizer:
    """One for a worker: jobs share the engine and its warm process."""

    def __init__(self, engine: Engine, process: SpeechProcess) -> None:
        """`process` answers `find`; engines that have one hear in it too."""
        self.engine = engine
        self._process = process

    @property
    def pid(self) -> int | None:
        """Of the warm process; None before the first request and after a death."""
        return self._process.pid

    async def transcribe(
        self, wav: Path, *, language: str | None, on_progress: Callable[[float], None] = lambda _: None
    ) -> Transcript:
        """Recognise a 16 kHz mono WAV file; times are relative to its start. Cancelling it stops the engine's work."""
        self.engine.check_language(language)
        windows = await self._find(wav)
        heard: list[Heard] = []
        if windows:
            # The first one decides the language: told of it, the engine is better at the others, short ones too.
            heard.append(await self.engine.hear(wav, windows[0], language=language))
            language = language or heard[0].language
            on_progress(1 / len(windows))
            heard += await self._hear_all(wav, windows, language, on_progress)
        pieces = [_piece(window, each) for window, each in zip(windows, heard, strict=True)]
        return Transcript(
            engine=self.engine.name,
            model=self.engine.model,
            language=language or _most_common(heard) or UNDETERMINED,
            segments=stitch(pieces),
        )

    async def close(self) -> None:
        await self.engine.close()
        await self._process.close()

    async def _find(self, wav: Path) -> list[Window]:
        policy = self.engine.policy
        found = await self._process.ask(
            {
                "find": {
                    "wav": str(wav),
                    "shortest_seconds": policy.shortest_seconds,
                    "longest_seconds": policy.longest_seconds,
                }
            }
        )
        return [
            Window(item["start_seconds"], item["end_seconds"], tuple((start, end) for start, end in item["speech"]))
            for item in found
        ]

    async def _hear_all(
        self, wav: Path, windows: Sequence[Window], language: str | None, on_progress: Callable[[float], None]
    ) -> list[Heard]:
        """All but the first; as many at once as the engine likes."""
        slots = asyncio.Semaphore(self.engine.at_once)
        ended = 1

        async def hear(window: Window) -> Heard:
            nonlocal ended
            async with slots:
                heard = await self.engine.hear(wav, window, language=language)
            ended += 1
            on_progress(ended / len(windows))
            return heard

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(hear(window)) for window in windows[1:]]
        except ExceptionGroup as exc:
            # The others were cancelled because of the first one; that one tells why.
            raise exc.exceptions[0] from exc
        return [task.result() for task in tasks]


def _piece(window: Window, heard: Heard) -> Piece:
    """On the recording's clock, with words everywhere, and without what cannot have been said."""
    segments = []
    for segment in heard.segments:
        placed = moved(segment, window.start_seconds)
        if not placed.words:
            placed = _estimated(placed, window)
        # Noise is heard as punctuation.
        if any(char.isalnum() for char in placed.text):
            segments.append(placed)
    return Piece(window.start_seconds, window.end_seconds, tuple(segments))


def _estimated(segment: Segment, window: Window) -> Segment:
    speech = [
        (max(start, segment.start_seconds), min(end, segment.end_seconds))
        for start, end in window.speech
        if start < segment.end_seconds and end > segment.start_seconds
    ] or [(segment.start_seconds, segment.end_seconds)]
    text = without_loop(segment.text, seconds=sum(end - start for start, end in speech))
    words: tuple[Word, ...] = spread(text, speech)
    return Segment(speech[0][0], speech[-1][1], text, words)


def _most_common(heard: Sequence[Heard]) -> str | None:
    known = Counter(each.language for each in heard if each.language)
    return known.most_common(1)[0][0] if known else None
