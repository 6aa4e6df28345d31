"""Shifts the wall clock of a process that has imported nothing else yet; the monotonic clock stays as it is."""

import datetime as dt
import time
from typing import Any


def shift_wall_clock(seconds: float) -> None:
    real_time, real_time_ns, real_datetime = time.time, time.time_ns, dt.datetime
    by = dt.timedelta(seconds=seconds)

    class ShiftedType(type(real_datetime)):  # type: ignore[misc]  # the metaclass of datetime is plain `type`
        # What the C code of datetime makes are still real ones; they must pass for instances.
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real_datetime)

    class ShiftedDatetime(real_datetime, metaclass=ShiftedType):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Any:
            return real_datetime.now(tz) + by

        @classmethod
        def utcnow(cls) -> Any:
            return real_datetime.now(dt.UTC).replace(tzinfo=None) + by

    time.time = lambda: real_time() + seconds
    time.time_ns = lambda: real_time_ns() + round(seconds * 1e9)
    dt.datetime = ShiftedDatetime  # type: ignore[misc]
