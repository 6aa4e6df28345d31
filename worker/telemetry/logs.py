"""One way of logging for the whole process: structlog to stderr, secrets taken out, libraries included."""

import logging
import sys
from typing import Any, Literal

import structlog
from structlog.typing import EventDict, Processor

from worker.errors import ConfigError
from worker.telemetry.redact import redact_value

LogFormat = Literal["console", "json"]

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def configure_logging(fmt: LogFormat, level: str) -> None:
    """Call once, when the process starts. Our own code speaks from `level` on, libraries from WARNING on."""
    if level.upper() not in _LEVELS:
        raise ConfigError(f"LOG_LEVEL={level!r} is not a level: choose one of {', '.join(_LEVELS)}.")
    context: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    rendering: list[Processor] = [structlog.processors.format_exc_info, redact_event, _renderer(fmt)]
    structlog.configure(
        processors=[*context, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        # A logger made before this call must follow it too.
        cache_logger_on_first_use=False,
    )
    _route_libraries(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*context, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )


def redact_event(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """A structlog processor, see `redact`."""
    return {key: redact_value(value, key=key) for key, value in event.items()}


def _renderer(fmt: LogFormat) -> Processor:
    if fmt == "json":
        return structlog.processors.JSONRenderer(ensure_ascii=False)
    # The traceback is text by now, because only text can be redacted.
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)


def _route_libraries(formatter: logging.Formatter) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)
