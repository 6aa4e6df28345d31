"""Speech recognition behind one seam; engines differ, transcripts do not."""

from pathlib import Path
from typing import Protocol

from worker.domain.media import Transcript


class Recognizer(Protocol):
    """Failures that a later attempt may cure surface as AsrUnavailable. Cancelling `transcribe` stops the engine's work."""

    name: str

    async def transcribe(self, wav: Path, *, language: str | None) -> Transcript:
        """Recognise a 16 kHz mono WAV file; times are relative to its start."""

    async def close(self) -> None:
        """Stop the engine and whatever processes it runs."""
