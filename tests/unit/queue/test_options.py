"""Options: Python's spelling and pg-boss's, and what neither takes."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

from worker.errors import ConfigError
from worker.queue.options import NewJob, QueueOptions, SendOptions, as_json, from_json, start_after_text

ID = UUID("00000000-0000-4000-8000-000000000001")


def test_names_become_those_of_node() -> None:
    options = {"id": ID, "expire_in_seconds": 5, "retry_backoff": False, "singleton_key": None, "start_after": 3}
    assert as_json(options, SendOptions) == {
        "id": str(ID),
        "expireInSeconds": 5,
        "retryBackoff": False,
        "startAfter": "3",
    }


def test_group_becomes_flat() -> None:
    assert as_json({"group": {"id": "g", "tier": "t"}}) == {"groupId": "g", "groupTier": "t"}
    assert as_json({"group_id": "g"}) == {"groupId": "g"}


def test_options_of_a_schedule_are_those_for_sending() -> None:
    written = {"tz": "UTC", "key": "k", "missed": "once", "singletonKey": "s", "retryLimit": 3, "group": {"id": "g"}}
    assert from_json(written) == {"singleton_key": "s", "retry_limit": 3, "group": {"id": "g"}}
    assert from_json(None) == {}
    assert as_json(from_json(written), SendOptions) == {"singletonKey": "s", "retryLimit": 3, "groupId": "g"}


@pytest.mark.parametrize(
    ("options", "known", "words"),
    [
        ({"policy": "fifo"}, QueueOptions, "policy must be one of"),
        ({"retries": 3}, SendOptions, "unknown option retries"),
        ({"policy": "short"}, NewJob, "unknown option policy"),
        ({"expire_in_seconds": 0}, None, "expire_in_seconds must be a whole number of at least 1"),
        ({"expireInSeconds": 86401}, None, "expire_in_seconds must be at most 86400"),
        ({"heartbeat_seconds": 9}, None, "heartbeat_seconds"),
        ({"retention_seconds": 0}, None, "retention_seconds"),
        ({"delete_after_seconds": -1}, None, "delete_after_seconds"),
        ({"retry_limit": "3"}, None, "retry_limit"),
        ({"priority": 2**31}, None, "priority must be at most"),
        ({"retry_delay_max": 0}, None, "needs retry_backoff"),
    ],
)
def test_what_pg_boss_would_refuse_is_refused(options: dict[str, Any], known: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        as_json(options, known)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, None),
        (-1, None),
        (2.5, "2.5"),
        (timedelta(minutes=-1), None),
        (timedelta(minutes=1), "60.0"),
        ("PT1H", "PT1H"),
        ("2030-01-02", "2030-01-02T00:00Z"),
        ("2030-01-02T03:04:05", "2030-01-02T03:04:05Z"),
        ("2030-01-02 03:04:05.5", "2030-01-02T03:04:05.5Z"),
        ("2030-01-02T03:04:05Z", "2030-01-02T03:04:05Z"),
        ("2030-01-02T03:04:05-03", "2030-01-02T03:04:05-03"),
        ("2030-01-02 03:04 Europe/Berlin", "2030-01-02 03:04 Europe/Berlin"),
        (datetime(2030, 1, 2, tzinfo=UTC), "2030-01-02T00:00:00+00:00"),
        (datetime(2030, 1, 2, tzinfo=timezone(timedelta(hours=2))), "2030-01-02T00:00:00+02:00"),
    ],
)
def test_start_after_as_the_statement_takes_it(value: Any, text: str | None) -> None:
    assert start_after_text(value) == text
