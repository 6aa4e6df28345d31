"""The process that holds the moonshine engine; run as `python -m worker.asr.moonshine_child OWNER_PID`."""

from pathlib import Path

from moonshine_voice import ModelArch, get_model_path
from moonshine_voice.transcriber import Transcriber

from worker.asr.finding import WindowFinder
from worker.asr.serving import Questions, StillAtIt, serve
from worker.asr.wav import open_wav

#: the engine's own voice detection loses words at the edges of what it finds; ours comes before it
_ENGINE_OPTIONS = {"vad_threshold": "0.0"}


def _prepare(still_at_it: StillAtIt) -> Questions:
    engine = Transcriber(get_model_path("tiny-en"), ModelArch.TINY, options=_ENGINE_OPTIONS)

    def hear(wav: str, start_seconds: float, end_seconds: float) -> str:
        with open_wav(Path(wav)) as recording:
            samples = recording.samples(start_seconds, end_seconds)
            lines = engine.transcribe_without_streaming(samples, recording.sample_rate).lines
        return " ".join(line.text.strip() for line in lines)

    return {"find": WindowFinder(still_at_it).find, "hear": hear}


if __name__ == "__main__":
    serve(_prepare)
