"""`doctor`: is everything there that a worker needs?"""

import os
import sys

from rich.text import Text

from worker.cli.checks import Check, run_checks
from worker.cli.command import DONE, FAILED, Face, command
from worker.cli.output import printable


@command("doctor")
async def doctor(face: Face) -> int:
    """Check everything a worker needs, and say what to do about what is missing.

    Looks at the settings as a worker in this directory would find them. Nothing is changed, except that an embedded
    database is started if DATABASE_URL is not set.
    """
    checks: list[Check] = []
    async for check in run_checks():
        checks.append(check)
        _tell(face, check)
    is_well = all(check.ok for check in checks)
    if face.out.as_json:
        told = [{"name": check.name, "ok": check.ok, "detail": check.detail} for check in checks]
        face.out.value({"ok": is_well, "checks": told})
    elif is_well:
        face.out.line("Everything is in place.", "bold green")
    else:
        face.out.line(f"{sum(not check.ok for check in checks)} to mend.", "bold red")
    if any(check.is_hanging for check in checks):
        # Everything is said; a thread that waits for a dead server would hold up the exit for minutes.
        sys.stdout.flush()
        os._exit(FAILED)
    return DONE if is_well else FAILED


def _tell(face: Face, check: Check) -> None:
    mark = Text("✓", style="bold green") if check.ok else Text("✗", style="bold red")
    face.out.rich_line(Text.assemble(mark, " ", (f"{check.name:<10} ", "bold"), printable(check.detail)))
