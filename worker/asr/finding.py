"""Answers the question every speech process can answer: which windows of a recording are worth listening to."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from worker.asr.base import WindowPolicy
from worker.asr.serving import StillAtIt
from worker.asr.voice import VoiceDetector, find_speech
from worker.asr.wav import open_wav
from worker.asr.windows import plan_windows


class WindowFinder:
    def __init__(self, still_at_it: StillAtIt) -> None:
        self._detector = VoiceDetector()
        self._still_at_it = still_at_it

    def find(self, wav: str, shortest_seconds: float, longest_seconds: float) -> list[dict[str, Any]]:
        policy = WindowPolicy(shortest_seconds, longest_seconds)
        with open_wav(Path(wav)) as recording:
            speech = find_speech(self._detector.probabilities(recording, self._still_at_it))
            windows = plan_windows(speech, recording.levels(), policy, duration_seconds=recording.duration_seconds)
        return [asdict(window) for window in windows]
