"""Which installs the client works with."""

from worker.db.pool import Pool
from worker.queue import PgBoss


async def test_newer_schema_is_accepted_when_the_operator_says_so(pool: Pool, queue: PgBoss) -> None:
    await pool.execute("UPDATE pgboss.version SET version = 999")
    newer = await PgBoss.attach(pool, allow_newer=True)
    assert newer.version == 999
    job_id = await newer.send("clip", {})
    (delivery,) = await newer.fetch("clip")
    assert delivery.id == job_id
