"""The process that holds a whisper model: one window in, its segments with words out.

Run as `python -m worker.asr.whisper_child MODEL DEVICE COMPUTE_TYPE OWNER_PID` by worker.asr.whisper.
"""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from worker.asr.doubt import is_invented
from worker.asr.finding import WindowFinder
from worker.asr.serving import Questions, RefusedError, StillAtIt, serve
from worker.asr.wav import open_wav
from worker.asr.whisper import NOT_INSTALLED, directory_problem, model_directory

if TYPE_CHECKING:
    from faster_whisper import WhisperModel

#: a second, livelier try where the first is unsure of itself or repeats itself; more of them cost more than they mend
_TEMPERATURES = (0.0, 0.4)


class Listener:
    def __init__(self, model: "WhisperModel") -> None:
        self._model = model

    def hear(self, *, wav: str, start_seconds: float, end_seconds: float, language: str | None) -> Mapping[str, Any]:
        self._check_language(language)
        with open_wav(Path(wav)) as file:
            samples = file.between(start_seconds, end_seconds)
            duration_seconds = len(samples) / file.sample_rate
        found, facts = self._model.transcribe(
            samples.astype(np.float32) / 32768.0,
            language=language,
            temperature=_TEMPERATURES,
            word_timestamps=True,
            # A mistake in one window must not be believed in the next.
            condition_on_previous_text=False,
            # Windows are cut where somebody speaks.
            vad_filter=False,
        )
        return {"language": facts.language, "segments": _segments(found, duration_seconds)}

    def _check_language(self, language: str | None) -> None:
        if language not in {None, "en"} and not self._model.model.is_multilingual:
            raise RefusedError(f"language {language!r}: the model of ASR_MODEL knows only English (en).")


def prepare(still_at_it: StillAtIt) -> Questions:
    model, device, compute_type = sys.argv[1:4]
    try:
        from faster_whisper import WhisperModel  # noqa: PLC0415 - it may be absent, which is an answer of its own
    except ImportError as exc:
        raise RefusedError(f"{NOT_INSTALLED} ({exc}).") from exc
    directory = _complete_directory(model)
    try:
        loaded = WhisperModel(str(directory), device=device, compute_type=compute_type, local_files_only=True)
    except Exception as exc:
        if "out of memory" in str(exc).lower():
            raise
        # Wrong types, devices and files are all told by ValueError, RuntimeError or an Exception of the tokenizer's.
        raise RefusedError(
            f"faster-whisper cannot load {model} on device {device} as {compute_type}: {exc}. "
            "Check ASR_MODEL, ASR_DEVICE and ASR_COMPUTE_TYPE."
        ) from exc
    return {"find": WindowFinder(still_at_it).find, "hear": Listener(loaded).hear}


def _complete_directory(model: str) -> Path:
    directory = model_directory(model) or _from_hub(model)
    if problem := directory_problem(directory):
        raise RefusedError(problem)
    return directory


def _from_hub(name: str) -> Path:
    """The local copy if it is whole, so that a worker that has one never asks the hub."""
    from faster_whisper import download_model  # noqa: PLC0415 - see prepare
    from huggingface_hub import constants  # noqa: PLC0415 - comes with it
    from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError  # noqa: PLC0415 - likewise

    try:
        copy = Path(download_model(name, local_files_only=True))
        if directory_problem(copy) is None:
            return copy
    except LocalEntryNotFoundError:
        pass
    except ValueError as exc:
        raise RefusedError(f"ASR_MODEL={name}: faster-whisper does not know it. {exc}.") from exc
    if constants.HF_HUB_OFFLINE:
        raise RefusedError(
            f"ASR_MODEL={name} is not on this machine, and HF_HUB_OFFLINE forbids to download it: "
            "allow it once, or name a directory that holds a converted model."
        )
    try:
        return Path(download_model(name))
    except (RepositoryNotFoundError, ValueError) as exc:
        raise RefusedError(f"ASR_MODEL={name}: the model hub has no such model. {exc}") from exc
    except OSError as exc:
        # The hub is away or broke off, which may be over soon: an end without an answer is tried again.
        raise SystemExit(f"ASR_MODEL={name} is not on this machine and cannot be downloaded now: {exc}") from exc


def _segments(found: Iterable[Any], duration_seconds: float) -> list[Mapping[str, Any]]:
    """The model may place a word in the silence that its window was filled up with."""

    def within(seconds: float) -> float:
        return min(max(0.0, float(seconds)), duration_seconds)

    told: list[Mapping[str, Any]] = []
    for segment in found:
        text = segment.text.strip()
        # Noise is heard as punctuation.
        if not any(char.isalnum() for char in text) or is_invented(
            no_speech_probability=segment.no_speech_prob,
            mean_log_probability=segment.avg_logprob,
            compression_ratio=segment.compression_ratio,
        ):
            continue
        words = [
            (within(word.start), within(word.end), word.word.strip(), min(max(0.0, float(word.probability)), 1.0))
            for word in segment.words or ()
            if word.word.strip()
        ]
        told.append({"start": within(segment.start), "end": within(segment.end), "text": text, "words": words})
    return told


if __name__ == "__main__":
    serve(prepare)
