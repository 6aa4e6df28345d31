"""`python -m tests.acceptance.worker.attacks.worker_main`: a real worker whose name server tells lies."""

import asyncio
import functools
import json
import os
import socket

from aiohttp.abc import AbstractResolver, ResolveResult

from worker.app import open_app, open_worker
from worker.pipeline import media_courses
from worker.runtime.supervisor import stop_on_signals
from worker.settings import load_settings
from worker.telemetry.logs import configure_logging


class LyingResolver(AbstractResolver):
    """Each name answers with its list of addresses, one answer after the other; the last one stays."""

    def __init__(self, answers: dict[str, list[list[str]]]) -> None:
        self._answers = answers

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        answers = self._answers.get(host)
        if answers is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [
            ResolveResult(
                hostname=host, host=address, port=port, proto=0, flags=socket.AI_NUMERICHOST,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
            )
            for address in addresses
        ]  # fmt: skip

    async def close(self) -> None:
        pass


async def main() -> None:
    settings = load_settings()
    configure_logging(settings.log_format, settings.log_level)
    courses = functools.partial(media_courses, resolver=LyingResolver(json.loads(os.environ["ATTACK_NAMES"])))
    async with open_app(settings, role="worker") as app, open_worker(app, make_courses=courses) as supervisor:
        stop_on_signals(supervisor.stop)
        await supervisor.run()


if __name__ == "__main__":
    asyncio.run(main())
