"""The engine of a worker that should not listen: every transcript is empty."""

from pathlib import Path

from worker.domain.media import Transcript

#: ISO 639 for "undetermined"
_UNDETERMINED = "und"


class NoRecognizer:
    name = "none"

    async def transcribe(self, wav: Path, *, language: str | None) -> Transcript:  # noqa: ARG002 - the Protocol's shape
        return Transcript(engine=self.name, language=language or _UNDETERMINED)

    async def close(self) -> None:
        return
