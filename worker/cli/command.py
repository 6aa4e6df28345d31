"""What all commands share: --json and --debug, an event loop, and errors told in one sentence with an exit code."""

import asyncio
import functools
import inspect
import os
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from worker.cli.output import Output
from worker.errors import ClipbossError, ConfigError, InvalidRequest
from worker.settings import Settings, load_settings
from worker.telemetry.logs import configure_logging

if TYPE_CHECKING:
    from worker.app import App

DONE, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130

Body = Callable[..., Coroutine[Any, Any, int | None]]


class Face:
    """What a command has of the outside: where to write, the settings, the database."""

    def __init__(self, out: Output, *, is_debugging: bool) -> None:
        self.out = out
        self.is_debugging = is_debugging

    def load_settings(self, **overrides: Any) -> Settings:
        """Settings, with logs that stay out of the way of what the command prints."""
        settings = load_settings(**overrides)
        self.is_debugging = self.is_debugging or settings.log_level == "debug"
        configure_logging(settings.log_format, "debug" if self.is_debugging else "warning")
        return settings

    @asynccontextmanager
    async def open_app(self, settings: Settings | None = None) -> AsyncIterator["App"]:
        # Imports the whole worker, which takes longer than most commands do.
        from worker.app import open_app  # noqa: PLC0415

        async with open_app(settings or self.load_settings(), role="cli", say=self.out.note) as app:
            yield app


class Failure(NamedTuple):
    label: str
    code: str
    message: str
    exit_code: int


def command(name: str, **attributes: Any) -> Callable[[Body], click.Command]:
    """Makes a click command of a coroutine function, whose first argument is the Face."""

    def decorate(body: Body) -> click.Command:
        def run(*, as_json: bool, debug: bool, **arguments: Any) -> int:
            is_debugging = debug or os.environ.get("LOG_LEVEL", "").lower() == "debug"
            face = Face(Output(as_json=as_json), is_debugging=is_debugging)
            return execute(face, functools.partial(body, face, **arguments))

        made = click.Command(name, callback=run, help=inspect.cleandoc(body.__doc__ or ""), **attributes)
        # click's decorators leave the parameters here, last one first
        made.params = [*reversed(getattr(body, "__click_params__", [])), *_shared_options()]
        return made

    return decorate


def _shared_options() -> list[click.Parameter]:
    return [
        click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON value on stdout."),
        click.Option(["--debug"], is_flag=True, help="Log everything, and show tracebacks."),
    ]


def execute(face: Face, body: Callable[[], Coroutine[Any, Any, int | None]]) -> int:
    """Run to an exit code; whatever goes wrong is told in one sentence."""
    try:
        return asyncio.run(body()) or DONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough; the interpreter must not try to flush the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except click.ClickException:
        raise
    except Exception as exc:  # noqa: BLE001 - the last one who can tell it to a person
        if face.is_debugging:
            traceback.print_exc()
        failure = explain(exc)
        face.out.error(failure.code, failure.message, label=failure.label)
        return failure.exit_code


def explain(exc: Exception) -> Failure:
    match exc:
        case ConfigError() | InvalidRequest():
            return Failure("error", exc.code, str(exc), MISUSED)
        case ClipbossError():
            return Failure("error", exc.code, str(exc), FAILED)
        case _ if type(exc).__module__.startswith("asyncpg"):
            return Failure("error", "DATABASE_ERROR", f"the database: {exc}", FAILED)
    message = f"{type(exc).__name__}: {exc} (run with LOG_LEVEL=debug for the traceback)"
    return Failure("internal error", "INTERNAL_ERROR", message, FAILED)


def how_to_call() -> str:
    """What to type before a command, here: in a checkout `./dev` knows which Python."""
    if Path("dev").is_file() and Path("worker/__main__.py").is_file():
        return "./dev run"
    return click.get_current_context().find_root().info_name or "clipboss"
