"""The command line: which commands there are. Each is loaded when it is asked for, so that `--help` is quick."""

import json
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple, NoReturn

import click

from worker import __version__


class _Place(NamedTuple):
    module: str
    summary: str


_COMMANDS = {
    "run": _Place("run", "Take jobs from the queues and work on them (the default command)."),
    "up": _Place("run", "Try it out: database and worker in one process, with a word on what to do next."),
    "demo": _Place("demo", "Run three real jobs on a sample of its own and show what came out."),
    "submit": _Place("submit", "Send a job."),
    "jobs": _Place("jobs", "Look at jobs, cancel them, try them again."),
    "workers": _Place("workers", "Look at workers: who lives, what they do, what they got done."),
    "migrate": _Place("migrate", "Create or update tables and queues in the database."),
    "doctor": _Place("doctor", "Check everything a worker needs, and say what to do about the rest."),
}
_OF_THE_GROUP = {"-h", "--help", "--version"}


class _LazyGroup(click.Group):
    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = _COMMANDS.get(cmd_name)
        if place is None:
            return None
        found: click.Command = getattr(import_module(f"worker.cli.{place.module}"), cmd_name)
        return found

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.summary) for name, place in _COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in _OF_THE_GROUP):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 failed or not found, 2 wrong usage or configuration, 130 interrupted. "
    "Settings come from the environment and from .env; .env.example names them all.",
)
@click.version_option(__version__, prog_name="clipboss")
def cli() -> None:
    """clipboss cuts frame-exact clips, with poster and transcript, from jobs in PostgreSQL.

    Without a command it runs a worker. Every command has --json and --help.
    """


def main() -> NoReturn:
    sys.exit(invoke(sys.argv[1:]))


def invoke(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character must not cost the answer.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # text streams of the interpreter
    try:
        return int(cli.main(list(arguments), standalone_mode=False) or 0)
    except click.ClickException as exc:
        exc.show()
        if "--json" in arguments:
            print(json.dumps({"error": {"code": "USAGE", "message": exc.format_message()}}))
        return exc.exit_code
    except click.Abort:
        return 130
