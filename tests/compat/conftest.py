"""What the compatibility tests share: real pg-boss, and a Python client beside it on the same database."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.compat import npm
from tests.compat.harness import NEWEST, OLDER, NodeBoss
from worker.db.pool import Pool
from worker.queue import PgBoss

StartNode = Callable[..., Awaitable[NodeBoss]]


@pytest.fixture(scope="session")
def packages() -> Path:
    """The newest pg-boss this client knows: 12.38.0, schema 46."""
    return npm.installed(NEWEST)


@pytest.fixture(scope="session")
def older_packages() -> Path:
    """The oldest one: 12.27.0, schema 37."""
    return npm.installed(OLDER)


@pytest.fixture
async def start_node(dsn: str, packages: Path) -> AsyncIterator[StartNode]:
    """Starts pg-boss with the given constructor options on the test's database; ends it with the test."""
    async with AsyncExitStack() as stack:

        async def start(**options: Any) -> NodeBoss:
            return await stack.enter_async_context(NodeBoss(dsn, packages=packages, **options))

        yield start


@pytest.fixture
async def node(start_node: StartNode) -> NodeBoss:
    """pg-boss without background passes."""
    return await start_node()


@pytest.fixture
async def boss(pool: Pool) -> PgBoss:
    """The Python client, and the standard queue `q` with three attempts and no delay between them."""
    boss = await PgBoss.attach(pool)
    await boss.create_queue("q", retry_limit=2)
    return boss
