"""Moonshine, the default engine: English, offline, weights inside its wheel, kept warm in its own process."""

import importlib.util
from pathlib import Path

from worker.asr.base import Heard, Window, WindowPolicy
from worker.asr.process import SpeechProcess
from worker.domain.transcript import Segment
from worker.errors import ConfigError, InvalidRequest

NOT_INSTALLED = (
    "ASR_ENGINE=moonshine needs the package moonshine-voice==0.1.0, which is not installed (not every platform has a "
    "wheel): install it, or set ASR_ENGINE to another engine, or ASR_ENGINE=none."
)

_CHILD_MODULE = "worker.asr.moonshine_child"
_LANGUAGE = "en"


class MoonshineEngine:
    name = "moonshine"
    model: str | None = "tiny-en"
    #: measured on readings and synthetic speech (`./dev bench asr`): 7.9 % of the words wrong; 9.6 % with 6 to 12 s,
    #: 8.6 % with 12 to 28 s. Its memory grows with the square of the upper bound.
    policy = WindowPolicy(shortest_seconds=8.0, longest_seconds=20.0)
    at_once = 1

    def __init__(self, *, patience_seconds: float = 120.0) -> None:
        """`patience_seconds` bounds the load of the weights and each answer."""
        self.process = SpeechProcess(_CHILD_MODULE, patience_seconds=patience_seconds)

    @staticmethod
    def is_installed() -> bool:
        return importlib.util.find_spec("moonshine_voice") is not None

    def check_language(self, language: str | None) -> None:
        if language is not None and language.replace("_", "-").split("-")[0].lower() != _LANGUAGE:
            raise InvalidRequest(
                f"language {language!r}: the speech engine moonshine knows only English (en). Leave `language` "
                "out, send `transcript: false`, or run a worker with another ASR_ENGINE."
            )

    async def check(self) -> str:
        if not self.is_installed():
            raise ConfigError(NOT_INSTALLED)
        return f"moonshine, {self.model}: English, offline"

    async def hear(self, wav: Path, window: Window, *, language: str | None) -> Heard:
        self.check_language(language)
        text = await self.process.ask(
            {"hear": {"wav": str(wav), "start_seconds": window.start_seconds, "end_seconds": window.end_seconds}}
        )
        length = window.end_seconds - window.start_seconds
        return Heard((Segment(0.0, length, text),), _LANGUAGE)

    async def close(self) -> None:
        await self.process.close()
