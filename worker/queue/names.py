"""Names and numbers that every pg-boss client must agree on."""

import hashlib
import re

from worker.errors import ConfigError

#: pg-boss schema versions this client works with; it creates the newest
OLDEST_SCHEMA = 37
NEWEST_SCHEMA = 46

_QUEUE_NAME = re.compile(r"[A-Za-z0-9_.\-/]+")


def notify_channel(schema: str) -> str:
    """The channel on which queues with `notify` announce new jobs; the payload is the queue's name."""
    return "pgboss_" + hashlib.sha224(schema.encode()).hexdigest()[:24]


def advisory_key(database: str, schema: str, suffix: str = "") -> int:
    """The transaction-level advisory lock that pg-boss takes for `suffix`."""
    digest = hashlib.sha224(f"{database}.pgboss.{schema}{suffix}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def check_queue_name(name: str) -> str:
    if not _QUEUE_NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is not a queue name (letters, digits and _ . - / only)")
    return name
