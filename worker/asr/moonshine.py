"""Moonshine, the default engine: English, offline, weights inside its wheel, kept warm in its own process."""

import asyncio
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from worker.asr.child import Child
from worker.domain.media import Segment, Transcript
from worker.errors import AsrUnavailable, InvalidRequest, OutputCorrupt

_CHILD_MODULE = "worker.asr.moonshine_child"
_LANGUAGE = "en"


class MoonshineRecognizer:
    """Starts its process with the first request. One at a time: the engine already uses every core."""

    name = "moonshine"

    def __init__(self, *, patience_seconds: float = 120.0) -> None:
        """`patience_seconds` bounds the load of the weights and each stretch of at most 12 s of sound."""
        self._patience_seconds = patience_seconds
        self._turn = asyncio.Lock()
        self._child: Child | None = None
        self._is_closed = False

    @staticmethod
    def is_installed() -> bool:
        return importlib.util.find_spec("moonshine_voice") is not None

    @property
    def pid(self) -> int | None:
        """Of the warm process; None before the first request and after a death."""
        return self._child.pid if self._child is not None and self._child.is_alive else None

    async def transcribe(self, wav: Path, *, language: str | None) -> Transcript:
        _require_english(language)
        async with self._turn:
            child = await self._warm_child()
            try:
                segments = await self._ask(child, wav)
            except asyncio.CancelledError:
                await child.stop()
                raise
        return Transcript(engine=self.name, language=_LANGUAGE, segments=segments)

    async def close(self) -> None:
        self._is_closed = True
        # Without waiting for a turn: the request that has it fails at once instead of holding up the exit.
        await self._stop_child()
        async with self._turn:
            await self._stop_child()

    async def _warm_child(self) -> Child:
        if self._child is not None and not self._child.is_alive:
            await self._stop_child()
        if self._child is None and not self._is_closed:
            self._child = await Child.start(_CHILD_MODULE)
        if self._child is None or self._is_closed:
            raise AsrUnavailable("The speech engine is closed because the worker is stopping.")
        return self._child

    async def _stop_child(self) -> None:
        if self._child is not None:
            await self._child.stop()
            self._child = None

    async def _ask(self, child: Child, wav: Path) -> tuple[Segment, ...]:
        await child.send({"wav": str(wav)})
        segments: list[Segment] = []
        while True:
            message = await child.receive(patience_seconds=self._patience_seconds)
            match message:
                case {"start": float(start), "end": float(end), "text": str(text)}:
                    segments.append(Segment(start_seconds=start, end_seconds=end, text=text))
                case {"nothing_heard": True}:
                    continue
                case {"done": True}:
                    return tuple(segments)
                case {"bad_wav": str(why)}:
                    raise OutputCorrupt(f"The sound extracted for transcription cannot be read ({wav.name}): {why}.")
                case {"failed": str(why)}:
                    raise AsrUnavailable(f"The speech engine moonshine failed: {why}.")
                case _:
                    await child.stop()
                    raise AsrUnavailable(f"The speech process sent a message nobody knows: {_keys(message)}.")


def _require_english(language: str | None) -> None:
    if language is not None and language.replace("_", "-").split("-")[0].lower() != _LANGUAGE:
        raise InvalidRequest(
            f"language {language!r}: the speech engine moonshine knows only English (en). Leave `language` "
            "out, send `transcript: false`, or run a worker with another ASR_ENGINE."
        )


def _keys(message: Mapping[str, Any]) -> str:
    return ", ".join(sorted(message)) or "an empty one"
