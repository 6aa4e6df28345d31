"""faster-whisper: a hundred languages with times and confidence for each word, kept warm in its own process."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from worker.asr.base import Heard, Window, WindowPolicy
from worker.asr.languages import language_code, whisper_code
from worker.asr.process import SpeechProcess
from worker.domain.transcript import Segment, Word
from worker.errors import AsrRefused, ConfigError, InvalidRequest

DEFAULT_MODEL = "small"
NOT_INSTALLED = (
    "ASR_ENGINE=faster-whisper needs the package faster-whisper, which is not installed: "
    "pip install 'clipboss[whisper]', or choose another ASR_ENGINE"
)

_CHILD_MODULE = "worker.asr.whisper_child"
#: without the tokenizer the package would fetch one from the internet, and not always the right one
_MODEL_FILES = ("model.bin", "config.json", "tokenizer.json")
_VOCABULARIES = ("vocabulary.json", "vocabulary.txt")


class WhisperEngine:
    """Starts its process with the first request. One window at a time: the engine already uses every core."""

    name = "faster-whisper"
    #: the model always sees 30 s, filled up with silence: shorter windows cost the same, longer ones are cut blindly
    policy = WindowPolicy(shortest_seconds=12.0, longest_seconds=28.0)
    at_once = 1

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        device: str = "auto",
        compute_type: str = "default",
        patience_seconds: float = 600.0,
    ) -> None:
        """`model` is a directory, or a name on the model hub; `patience_seconds` bounds the load of the weights,
        download included, and each answer."""
        self.model: str | None = model
        self._name_or_directory = model
        self._device = device
        self.process = SpeechProcess(_CHILD_MODULE, model, device, compute_type, patience_seconds=patience_seconds)

    @staticmethod
    def is_installed() -> bool:
        return importlib.util.find_spec("faster_whisper") is not None

    @property
    def pid(self) -> int | None:
        """Of the warm process; None before the first request and after a death."""
        return self.process.pid

    def check_language(self, language: str | None) -> None:
        if language is None:
            return
        code = whisper_code(language)
        if code is None:
            raise InvalidRequest(
                f"language {language!r}: whisper models do not know it. Leave `language` out to have it detected, "
                "or send `transcript: false`."
            )
        if self._name_or_directory.endswith(".en") and code != "en":
            raise InvalidRequest(
                f"language {language!r}: the model {self.model} knows only English (en). Leave `language` out, "
                "or run a worker with another ASR_MODEL."
            )

    async def hear(self, wav: Path, window: Window, *, language: str | None) -> Heard:
        answer = await self.process.ask(
            {
                "hear": {
                    "wav": str(wav),
                    "start_seconds": window.start_seconds,
                    "end_seconds": window.end_seconds,
                    "language": None if language is None else whisper_code(language),
                }
            }
        )
        return Heard(tuple(_segment(told) for told in answer["segments"]), language_code(answer["language"]))

    async def check(self) -> str:
        """What it would use, in a line. Nothing is loaded or downloaded for it."""
        if not self.is_installed():
            raise ConfigError(NOT_INSTALLED + ".")
        directory = model_directory(self._name_or_directory)
        if directory is None:
            return f"faster-whisper, model {self.model} of the hub, device {self._device}"
        if problem := directory_problem(directory):
            raise AsrRefused(problem)
        return f"faster-whisper, model in {directory}, device {self._device}"

    async def close(self) -> None:
        await self.process.close()


def model_directory(model: str) -> Path | None:
    """Where ASR_MODEL lies, if it is meant as a path; None: it is a name."""
    path = Path(model).expanduser()
    is_meant_as_path = path.is_absolute() or model.startswith((".", "~"))
    return path if is_meant_as_path or path.is_dir() else None


def directory_problem(directory: Path) -> str | None:
    """Why no model can be loaded from there; None: everything a model consists of is there."""
    if not directory.is_dir():
        return f"ASR_MODEL={directory} is not a directory: name one with a converted model, or a model such as small."
    missing = [name for name in _MODEL_FILES if not (directory / name).is_file()]
    if not any((directory / name).is_file() for name in _VOCABULARIES):
        missing.append(_VOCABULARIES[0])
    if not missing:
        return None
    return (
        f"ASR_MODEL={directory} lacks {', '.join(missing)}: copy what is missing from the model's original. "
        "ct2-transformers-converter writes all of them with --copy_files tokenizer.json preprocessor_config.json."
    )


def _segment(told: Mapping[str, Any]) -> Segment:
    words = tuple(Word(start, end, text, confidence) for start, end, text, confidence in told["words"])
    return Segment(told["start"], told["end"], told["text"], words)
