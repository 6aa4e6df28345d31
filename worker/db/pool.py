"""Connections to PostgreSQL: timeouts, names, JSON, and errors that a person can act on."""

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from worker.errors import DatabaseUnavailable

if TYPE_CHECKING:  # generic for the type checker only
    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]
    Pool: TypeAlias = asyncpg.Pool[asyncpg.Record]
else:
    Connection = asyncpg.Connection | PoolConnectionProxy
    Pool = asyncpg.Pool
#: what runs a statement: the pool for one by itself, a connection inside somebody's transaction
Executor: TypeAlias = Pool | Connection
T = TypeVar("T")

#: no statement of ours takes long; one that does must not hang its caller
STATEMENT_TIMEOUT_SECONDS = 30.0
CONNECT_TIMEOUT_SECONDS = 10.0


async def open_pool(dsn: str, *, name: str, size: int = 3, timeout_seconds: float = STATEMENT_TIMEOUT_SECONDS) -> Pool:
    """A pool whose connections are called `name` in pg_stat_activity. DatabaseUnavailable says what to mend."""
    options = _connect_options(dsn, name, timeout_seconds)
    if await _explained(dsn, lambda: _is_behind_pooler(options)):
        # In transaction mode the next statement may meet another backend, which knows none of our prepared ones.
        options["statement_cache_size"] = 0

    async def create() -> Pool:
        return await asyncpg.create_pool(min_size=0, max_size=size, init=_prepare, **options)

    return await _explained(dsn, create)


async def open_connection(dsn: str, *, name: str) -> "asyncpg.Connection[asyncpg.Record]":
    """One connection outside any pool, for LISTEN and for beats, which must never queue behind other work.

    It prepares no statements: with a few in a minute they save nothing, and so a pooler need not be looked for.
    """
    options = _connect_options(dsn, name, STATEMENT_TIMEOUT_SECONDS)

    async def connect() -> "asyncpg.Connection[asyncpg.Record]":
        connection: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(statement_cache_size=0, **options)
        await _prepare(connection)
        return connection

    return await _explained(dsn, connect)


def _connect_options(dsn: str, name: str, timeout_seconds: float) -> dict[str, Any]:
    return {
        "dsn": dsn,
        "timeout": min(CONNECT_TIMEOUT_SECONDS, timeout_seconds),
        "command_timeout": timeout_seconds,
        "server_settings": {"application_name": name},
    }


async def _is_behind_pooler(options: dict[str, Any]) -> bool:
    connection = await asyncpg.connect(statement_cache_size=0, **options)
    try:
        # A pooler such as PgBouncer makes up the backend's pid that it tells its clients.
        return bool(connection.get_server_pid() != await connection.fetchval("SELECT pg_backend_pid()"))
    finally:
        await connection.close()


async def _prepare(connection: Any) -> None:
    await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=_to_json, decoder=json.loads)


def _to_json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


async def _explained(dsn: str, call: Callable[[], Awaitable[T]]) -> T:
    try:
        return await call()
    except (asyncpg.ClientConfigurationError, ValueError) as exc:
        raise DatabaseUnavailable(
            # The parser's own words may quote a piece of the password.
            "DATABASE_URL is not a PostgreSQL address; expected postgresql://user:password@host:5432/database "
            "(special characters in the password percent-encoded)"
        ) from exc
    except (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError) as exc:
        raise DatabaseUnavailable(
            f"PostgreSQL at {where(dsn)} refused the login; check user and password in DATABASE_URL"
        ) from exc
    except asyncpg.InvalidCatalogNameError as exc:
        raise DatabaseUnavailable(f"PostgreSQL at {where(dsn)} has no such database; create it first") from exc
    except (OSError, TimeoutError, asyncpg.PostgresConnectionError, asyncpg.CannotConnectNowError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc) or "no answer in time"
        raise DatabaseUnavailable(
            f"PostgreSQL at {where(dsn)} cannot be reached ({reason}); is it running, and is DATABASE_URL right?"
        ) from exc
    except asyncpg.PostgresError as exc:
        raise DatabaseUnavailable(f"PostgreSQL at {where(dsn)} refused the connection: {exc}") from exc


def where(dsn: str) -> str:
    """The address without credentials."""
    try:
        parts = urlsplit(dsn)
        return f"{parts.hostname or 'localhost'}:{parts.port or 5432}{parts.path}"
    except ValueError:
        return "an unreadable address"
