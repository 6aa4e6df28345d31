"""Speech recognition: which engines there are, and how the worker opens the one it was told to use."""

from worker.asr.base import Recognizer
from worker.asr.moonshine import MoonshineRecognizer
from worker.asr.none import NoRecognizer
from worker.errors import ConfigError

__all__ = ["ENGINES", "Recognizer", "open_recognizer"]

ENGINES = ("moonshine", "none")


def open_recognizer(engine: str) -> Recognizer:
    """The engine ASR_ENGINE names. Nothing is started or loaded before its first `transcribe`."""
    match engine:
        case "moonshine":
            if not MoonshineRecognizer.is_installed():
                raise ConfigError(
                    "ASR_ENGINE=moonshine needs the package moonshine-voice==0.1.0, which is not installed "
                    "(not every platform has a wheel): install it, or set ASR_ENGINE=none."
                )
            return MoonshineRecognizer()
        case "none":
            return NoRecognizer()
        case _:
            known = ", ".join(ENGINES)
            raise ConfigError(f"ASR_ENGINE={engine!r} is not an engine this worker has: choose one of {known}.")
