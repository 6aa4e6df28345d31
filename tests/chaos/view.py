"""Shows a run while it goes on: a table that changes on a terminal, a line now and then in a pipe."""

import time
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from tests.chaos.lanes import Lane

LINE_SECONDS = 10.0


class View:
    def __init__(self, lanes: Sequence[Lane], *, seconds: float, quiet: bool) -> None:
        self._lanes = lanes
        self._seconds = seconds
        self._started_at = time.monotonic()
        self._line_due = self._started_at
        self._console = Console(stderr=True, quiet=quiet)
        self._live = Live(console=self._console, auto_refresh=False) if self._console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def show(self, counts: Counter[str], *, alive: int, started: int) -> None:
        """`counts` is empty while the database is away."""
        now = time.monotonic()
        if self._live is not None:
            self._live.update(self._table(counts, alive=alive, started=started), refresh=True)
        elif now >= self._line_due:
            self._line_due = now + LINE_SECONDS
            faults = sum(lane.count for lane in self._lanes)
            jobs = " ".join(f"{name}={count}" for name, count in sorted(counts.items())) or "database away"
            self.say(f"{now - self._started_at:6.0f} s  {jobs}  workers={alive}/{started}  faults={faults}")

    def say(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _table(self, counts: Counter[str], *, alive: int, started: int) -> Table:
        passed = time.monotonic() - self._started_at
        table = Table(title=f"chaos: {passed:.0f} of {self._seconds:.0f} s, {alive} workers alive, {started} started")
        table.add_column("jobs")
        table.add_column("", justify="right")
        table.add_column("faults")
        table.add_column("", justify="right")
        jobs = [(name, str(count)) for name, count in sorted(counts.items())] or [("database away", "")]
        lanes = [(lane.name, str(lane.count) if lane.missing is None else "-") for lane in self._lanes]
        for index in range(max(len(jobs), len(lanes))):
            left = jobs[index] if index < len(jobs) else ("", "")
            right = lanes[index] if index < len(lanes) else ("", "")
            table.add_row(*left, *right)
        return table
