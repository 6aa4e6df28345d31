"""Installs the schema as the queue does: its quoted name put into the text, in one transaction."""

from pathlib import Path

import asyncpg

DDL = Path(__file__).parents[3] / "worker" / "queue" / "schema_46.sql"


async def install(connection: asyncpg.Connection, schema: str = "pgboss") -> None:
    async with connection.transaction():
        await connection.execute(DDL.read_text().replace("{queue}", f'"{schema}"'))
