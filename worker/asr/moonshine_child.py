"""The process that holds the moonshine engine: {"wav": path} lines in, a line per segment and an end out.

Run as `python -m worker.asr.moonshine_child OWNER_PID` by worker.asr.moonshine.
"""

import json
import os
import queue
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from moonshine_voice import ModelArch, MoonshineError, get_model_path
from moonshine_voice.transcriber import Transcriber

from worker.asr.orphan import die_with_owner
from worker.asr.spans import find_spans
from worker.asr.wav import BadWavError, WavReader, open_wav

#: the engine's own voice detection loses words at the edges of what it finds; ours comes before it
_ENGINE_OPTIONS = {"vad_threshold": "0.0"}


def main() -> None:
    die_with_owner(int(sys.argv[1]))
    requests, answers = _take_over_stdio()
    engine = Transcriber(get_model_path("tiny-en"), ModelArch.TINY, options=_ENGINE_OPTIONS)
    for line in _lines_until_orphaned(requests):
        for message in _answer(engine, Path(json.loads(line)["wav"])):
            answers.write(json.dumps(message) + "\n")
            answers.flush()


def _take_over_stdio() -> tuple[IO[str], IO[str]]:
    """Private copies of the two pipes; whatever a library prints, from C too, goes to stderr."""
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, answers


def _lines_until_orphaned(requests: IO[str]) -> Iterator[str]:
    """Ends the process as soon as the owner's end of the pipe closes, even in the middle of a recognition."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in requests:
            lines.put(line)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield lines.get()


def _answer(engine: Transcriber, path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with open_wav(path) as wav:
            yield from _segments(engine, wav)
    except BadWavError as exc:
        yield {"bad_wav": str(exc)}
    except MoonshineError as exc:
        yield {"failed": str(exc)}
    else:
        yield {"done": True}


def _segments(engine: Transcriber, wav: WavReader) -> Iterator[Mapping[str, Any]]:
    for span in find_spans(wav.levels()):
        lines = engine.transcribe_without_streaming(wav.samples(span), wav.sample_rate).lines
        text = " ".join(line.text.strip() for line in lines)
        # Noise is heard as punctuation.
        if any(char.isalnum() for char in text):
            yield {"start": wav.seconds(span.start), "end": wav.seconds(span.end), "text": text}
        else:
            yield {"nothing_heard": True}


if __name__ == "__main__":
    main()
