"""SQL lives in files, one statement each; this loads a room's `queries/` folder by name.

Two things vary between installs and are settled once, at load: the queue's schema (`{queue}`, quoted), and lines
that need a newer pg-boss schema: one that ends in `--@45` is left out when the install is older than 45.
"""

import re
from collections.abc import Mapping
from importlib.resources import files

from worker.errors import ConfigError

_SINCE = re.compile(r"--@(\d+)\s*$")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_$-]*")


def load_queries(package: str, *, queue_schema: str, queue_version: int) -> Mapping[str, str]:
    """Every `queries/*.sql` of a package, by file name without the ending."""
    folder = files(package) / "queries"
    return {
        entry.name.removesuffix(".sql"): render(entry.read_text(), queue_schema=queue_schema, version=queue_version)
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    }


def render(text: str, *, queue_schema: str, version: int) -> str:
    quoted = quote_identifier(queue_schema)
    kept = (line for line in text.splitlines() if not _is_newer(line, version))
    return "\n".join(kept).replace("{queue}", quoted)


def quote_identifier(name: str) -> str:
    if not _IDENTIFIER.fullmatch(name) or len(name) > 50:
        raise ConfigError(
            f"QUEUE_SCHEMA: {name!r} is not a schema name (letters, digits, _ $ and -, at most 50 characters)"
        )
    return f'"{name}"'


def _is_newer(line: str, version: int) -> bool:
    since = _SINCE.search(line)
    return since is not None and int(since.group(1)) > version
