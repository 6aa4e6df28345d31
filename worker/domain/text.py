"""Values that jsonb accepts: it refuses U+0000 and lone surrogates, and a refused error would hang its job."""

import math
from typing import Any


def storable(value: Any) -> Any:
    """The same JSON value with characters and numbers that jsonb cannot hold replaced."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {storable(str(key)): storable(item) for key, item in value.items()}
        case list() | tuple():
            return [storable(item) for item in value]
        case _:
            return value


def as_output(value: Any) -> Any:
    """pg-boss's form of a job's output: objects as they are, everything else wrapped."""
    if value is None or isinstance(value, dict):
        return storable(value)
    return {"value": storable(value)}
