"""Events and the queues that subscribe to them."""

import pytest

from worker.db.pool import Pool
from worker.errors import ConfigError, QueueMissing
from worker.queue import PgBoss


async def test_published_event_reaches_every_subscriber(queue: PgBoss) -> None:
    for name in ("a", "b", "c"):
        await queue.create_queue(name)
    for name in ("a", "b", "b"):
        await queue.subscribe("uploaded", name)
    await queue.subscribe("other", "c")
    sent = await queue.publish("uploaded", {"n": 1}, priority=3)
    assert sorted(sent) == ["a", "b"]
    for name in ("a", "b"):
        (delivery,) = await queue.fetch(name, 5)
        assert (delivery.id, delivery.data, delivery.priority) == (sent[name], {"n": 1}, 3)
    assert await queue.fetch("c") == []


async def test_unsubscribed_queue_gets_nothing(queue: PgBoss) -> None:
    await queue.subscribe("uploaded", "clip")
    assert await queue.unsubscribe("uploaded", "clip")
    assert not await queue.unsubscribe("uploaded", "clip")
    assert await queue.publish("uploaded") == {}


async def test_refusal_by_one_subscriber_does_not_keep_it_from_the_others(queue: PgBoss) -> None:
    await queue.create_queue("short", policy="short")
    for name in ("short", "clip"):
        await queue.subscribe("uploaded", name)
    await queue.publish("uploaded")
    second = await queue.publish("uploaded")
    assert second["short"] is None
    assert second["clip"] is not None


async def test_only_known_queues_subscribe(queue: PgBoss) -> None:
    with pytest.raises(QueueMissing, match="'nope'"):
        await queue.subscribe("uploaded", "nope")
    with pytest.raises(ConfigError, match="name"):
        await queue.subscribe("", "clip")


async def test_publishing_belongs_to_the_callers_transaction(queue: PgBoss, pool: Pool) -> None:
    await queue.subscribe("uploaded", "clip")
    async with pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        assert len(await queue.publish("uploaded", connection=connection)) == 1
        await transaction.rollback()
    assert await queue.fetch("clip") == []
