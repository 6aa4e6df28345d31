"""Everything a worker exposes: names, types and labels, read from the very objects that are scraped."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from prometheus_client.metrics import MetricWrapperBase

from worker.domain.job import JobStatus, StageName
from worker.errors import ClipbossError
from worker.telemetry.backlog import BacklogGauges, QueueDepth
from worker.telemetry.metrics import Metrics

#: values that a label can have; None: names that users give
VALUES: dict[str, set[str] | None] = {
    "queue": None,
    "stage": {str(name) for name in StageName},
    "outcome": {"done", "split", "snoozed", "retried", "failed", "cancelled", "handed_back", "dropped"},
    "reason": {
        *("stale", "handed_back", "done", "failed", "cancelled"),
        *(f"stray_{status}" for status in JobStatus if status.is_final),
    },
}


@dataclass(frozen=True)
class Exposed:
    name: str
    type: str
    labels: tuple[str, ...]
    help: str

    @property
    def series(self) -> set[str]:
        """The names under which its samples appear."""
        suffixes = ("_bucket", "_count", "_sum") if self.type == "histogram" else ("",)
        return {self.name + suffix for suffix in suffixes}


def exposed() -> dict[str, Exposed]:
    metrics = Metrics()
    found = [each for each in vars(metrics).values() if isinstance(each, MetricWrapperBase)]
    families = [(each.describe(), each._labelnames) for each in found]
    loop = asyncio.new_event_loop()
    families += [([family], family._labelnames) for family in BacklogGauges(_nobody, loop).describe()]
    loop.close()
    return {
        each.name: each
        for described, labels in families
        for family in described
        for each in [Exposed(_name(family.name, family.type), family.type, tuple(labels), family.documentation)]
    }


def codes() -> set[str]:
    def below(error: type[ClipbossError]) -> list[type[ClipbossError]]:
        return [error, *(each for child in error.__subclasses__() for each in below(child))]

    return {error.code for error in below(ClipbossError)}


def _name(family: str, kind: str) -> str:
    return f"{family}_total" if kind == "counter" else family


async def _nobody() -> Sequence[QueueDepth]:
    return ()
