"""The inner side of a speech process: questions come in as JSON lines, each gets one answer."""

import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from worker.asr.orphan import die_with_owner
from worker.asr.wav import BadWavError

Questions = Mapping[str, Callable[..., Any]]
#: to be called now and then by what takes long, or it is taken for hung
StillAtIt = Callable[[], None]


class RefusedError(Exception):
    """Asking again cannot help; the message says what to do."""


def serve(prepare: Callable[[StillAtIt], Questions]) -> None:
    """Answer until the owner is gone. A question is `{name: arguments}`; `prepare` loads what answering takes.

    The owner's pid is the last word of the command line.
    """
    die_with_owner(int(sys.argv[-1]))
    requests, answers = _take_over_stdio()

    def tell(message: Mapping[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    lines = _lines_until_orphaned(requests)
    try:
        questions = prepare(lambda: tell({"still_at_it": True}))
    except RefusedError as exc:
        # Told to whoever asks: a process that ends without a word would be taken for a crash.
        for _ in lines:
            tell({"refused": str(exc)})
    for line in lines:
        tell(_answer(questions, json.loads(line)))


def _answer(questions: Questions, question: Mapping[str, Any]) -> Mapping[str, Any]:
    ((name, arguments),) = question.items()
    try:
        return {"answer": questions[name](**arguments)}
    except BadWavError as exc:
        return {"bad_sound": str(exc)}
    except RefusedError as exc:
        return {"refused": str(exc)}
    except Exception as exc:  # noqa: BLE001 - engines raise what they like; the process stays warm
        return {"failed": f"{type(exc).__name__}: {exc}"}


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
