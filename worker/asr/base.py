"""Speech recognition behind one seam; engines differ, transcripts do not."""

from pathlib import Path
from typing import Protocol

from worker.domain.media import Transcript


class Recognizer(Protocol):
    """Failures that a later attempt may cure surface as AsrUnavailable, unreadable sound as OutputCorrupt.

    Cancelling `transcribe` stops the engine's work. A language the engine does not know is an InvalidRequest.
    """

    name: str

    async def transcribe(self, wav: Path, *, language: str | None) -> Transcript:
        """Recognise a 16 kHz mono WAV file; times are relative to its start."""

    async def close(self) -> None:
        """Stop the engine and whatever processes it runs."""
