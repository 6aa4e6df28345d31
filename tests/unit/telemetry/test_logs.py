"""What a log line looks like, and who may write one."""

import json
import logging
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog

from worker.errors import ConfigError
from worker.telemetry.logs import configure_logging


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, show = root.handlers[:], root.level, warnings.showwarning
    yield
    logging.captureWarnings(capture=False)
    root.handlers, warnings.showwarning = handlers, show
    root.setLevel(level)
    structlog.contextvars.clear_contextvars()
    structlog.reset_defaults()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    out, err = capsys.readouterr()
    assert out == ""
    return [json.loads(line) for line in err.splitlines()]


def refuse(url: str) -> None:
    raise ValueError(f"cannot open {url}")


def test_json_line_has_utc_time_level_event_facts_and_context(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("json", "info")
    with structlog.contextvars.bound_contextvars(job_id="j1"):
        structlog.get_logger().info("job_completed", seconds=1.5)

    [line] = lines(capsys)
    at = datetime.fromisoformat(line.pop("timestamp"))
    assert at.utcoffset() == UTC.utcoffset(None)
    assert line == {"event": "job_completed", "level": "info", "job_id": "j1", "seconds": 1.5}


def test_lines_below_the_level_are_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("json", "WARNING")
    structlog.get_logger().info("job_completed")

    assert lines(capsys) == []


def test_logger_made_before_the_configuration_follows_it(capsys: pytest.CaptureFixture[str]) -> None:
    logger = structlog.get_logger()
    configure_logging("json", "debug")
    logger.debug("beat_sent")

    assert [line["event"] for line in lines(capsys)] == ["beat_sent"]


def test_libraries_speak_from_warning_on_in_the_same_shape(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("json", "debug")
    logging.getLogger("botocore.auth").info("signing with %s", "key")
    logging.getLogger("asyncpg").warning("slow: %s", "postgres://u:p@h/d")

    [line] = lines(capsys)
    assert (line["event"], line["level"], line["logger"]) == (
        "slow: postgres://***@h/d",
        "warning",
        "asyncpg",
    )


def test_secrets_are_hidden_in_values_and_tracebacks(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("json", "info")
    try:
        refuse("https://h/a?sig=hunter2")
    except ValueError:
        structlog.get_logger().exception("source_refused", password="hunter2", url="https://u:hunter2@h/")

    [line] = lines(capsys)
    assert "hunter2" not in json.dumps(line)
    assert line["exception"].endswith("ValueError: cannot open https://h/a?***")


def test_console_is_plain_when_stderr_is_not_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("console", "info")
    try:
        refuse("https://h/a?sig=hunter2")
    except ValueError:
        structlog.get_logger().exception("job_failed", code="CLIP_FAILED")

    _, err = capsys.readouterr()
    assert "\x1b" not in err
    assert "job_failed" in err
    assert "code=CLIP_FAILED" in err
    assert "ValueError: cannot open https://h/a?***" in err


def test_python_warnings_become_log_lines(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("json", "info")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=False)
        logging.captureWarnings(capture=True)
        warnings.warn("old way", UserWarning, stacklevel=1)
        logging.captureWarnings(capture=False)

    [line] = lines(capsys)
    assert line["logger"] == "py.warnings"
    assert "old way" in line["event"]


def test_unknown_level_names_the_setting() -> None:
    with pytest.raises(ConfigError, match=r"LOG_LEVEL='loud'.*DEBUG"):
        configure_logging("json", "loud")
