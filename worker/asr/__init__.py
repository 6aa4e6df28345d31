"""Speech recognition: which engines there are, and how the worker opens the one it was told to use."""

from dataclasses import dataclass

from pydantic import SecretStr

from worker.asr.base import Engine
from worker.asr.http import DEFAULT_MODEL as DEFAULT_SERVED_MODEL
from worker.asr.http import HttpEngine
from worker.asr.moonshine import NOT_INSTALLED as MOONSHINE_MISSING
from worker.asr.moonshine import MoonshineEngine
from worker.asr.process import SpeechProcess
from worker.asr.recognizer import Recognizer
from worker.asr.whisper import DEFAULT_MODEL, WhisperEngine
from worker.asr.whisper import NOT_INSTALLED as WHISPER_MISSING
from worker.errors import ConfigError

__all__ = ["AsrOptions", "Engine", "Recognizer", "open_recognizer"]

#: finds speech for engines that have no process here
_FINDER_MODULE = "worker.asr.finder_child"


@dataclass(frozen=True, slots=True)
class AsrOptions:
    """The ASR_ settings."""

    engine: str = "moonshine"
    url: str | None = None
    #: None: the engine's own default
    model: str | None = None
    api_key: SecretStr | None = None
    device: str = "auto"
    compute_type: str = "default"
    #: bounds the load of an engine's weights, and each window it hears
    timeout_seconds: float = 120.0


def open_recognizer(options: AsrOptions) -> Recognizer | None:
    """With the engine ASR_ENGINE names; None for `none`. Nothing is started or loaded before its first use."""
    patience = options.timeout_seconds
    match options.engine:
        case "none":
            return None
        case "moonshine":
            # A worker that cannot listen says so when it starts, not job by job.
            _require(MoonshineEngine.is_installed(), MOONSHINE_MISSING)
            moonshine = MoonshineEngine(patience_seconds=patience)
            return Recognizer(moonshine, moonshine.process)
        case "faster-whisper":
            _require(WhisperEngine.is_installed(), WHISPER_MISSING)
            whisper = WhisperEngine(
                options.model or DEFAULT_MODEL,
                device=options.device,
                compute_type=options.compute_type,
                patience_seconds=patience,
            )
            return Recognizer(whisper, whisper.process)
        case "http":
            if options.url is None:
                raise ConfigError("ASR_ENGINE=http needs ASR_URL, such as https://api.openai.com/v1")
            server = HttpEngine(
                options.url,
                model=options.model or DEFAULT_SERVED_MODEL,
                api_key=options.api_key,
                timeout_seconds=patience,
            )
            return Recognizer(server, SpeechProcess(_FINDER_MODULE, patience_seconds=patience))
        case unknown:
            raise ConfigError(f"ASR_ENGINE={unknown!r} is not an engine: moonshine, faster-whisper, http or none.")


def _require(is_installed: bool, message: str) -> None:  # noqa: FBT001 - reads well where it is called
    if not is_installed:
        raise ConfigError(message)
