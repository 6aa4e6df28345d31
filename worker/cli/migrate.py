"""`migrate`: bring the database to where this release expects it."""

import click

from worker.cli.command import Face, command
from worker.queue.schema import read_version


@command("migrate")
@click.option("--queue-schema", metavar="S", help="Schema of the pg-boss tables, instead of QUEUE_SCHEMA.")
async def migrate(face: Face, *, queue_schema: str | None) -> None:
    """Create or update clipboss's tables and the queues in QUEUES.

    The pg-boss schema is created where there is none; an existing one is never changed. Safe to run at any time and
    from many machines at once.
    """
    # Imports the whole worker; a wrong setting is told before that.
    overrides = {"queue_schema": queue_schema} if queue_schema is not None else {}
    settings = face.load_settings(**overrides)
    from worker.app import install, open_bare_pool  # noqa: PLC0415

    async with open_bare_pool(settings, role="migrate", say=face.out.note) as pool:
        before = await read_version(pool, settings.queue_schema)
        applied = await install(pool, settings)
        version = await read_version(pool, settings.queue_schema)
    labels = [f"{migration.version:04}_{migration.name}" for migration in applied]
    if face.out.as_json:
        face.out.value(
            {
                "applied": labels,
                "queue_schema": settings.queue_schema,
                "queue_schema_version": version,
                "queue_schema_created": before is None,
                "queues": settings.queues,
            }
        )
        return
    if before is None:
        face.out.line(f"created the pg-boss schema {settings.queue_schema} (version {version})", "green")
    for label in labels:
        face.out.line(f"applied {label}", "green")
    if not labels:
        face.out.line("up to date")
