"""What ffmpeg says about itself on `-progress`, and how often anybody should hear of it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

KEY: Final = b"out_time_us="
#: one report is some 300 bytes; what is kept between reads must hold the longest line
KEEP_BYTES: Final = 64
MIN_STEP: Final = 0.01
MIN_INTERVAL_SECONDS: Final = 0.5


class ProgressParser:
    """Finds the latest position in a stream of reports; only the last of a read matters, so it looks back."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> float | None:
        """The newest position in seconds, or None when the chunk completes no report of one."""
        text = self._rest + chunk
        end = text.rfind(b"\n")
        whole = text[: end + 1]
        self._rest = text[end + 1 :][-KEEP_BYTES:]
        at = len(whole)
        while (at := whole.rfind(KEY, 0, at)) >= 0:
            value = whole[at + len(KEY) : whole.index(b"\n", at)].strip()
            # N/A until the first packet is written
            if value.lstrip(b"-").isdigit():
                return max(0.0, int(value) / 1_000_000)
        return None


@dataclass(slots=True)
class ProgressThrottle:
    """Lets a fraction through when it moved by a point or half a second has passed, and always the end."""

    _shown: float | None = None
    _shown_at: float = 0.0

    def admits(self, fraction: float, *, now: float) -> bool:
        if self._shown is not None:
            if fraction <= self._shown:
                return False
            moved = fraction - self._shown >= MIN_STEP - 1e-9
            if not moved and now - self._shown_at < MIN_INTERVAL_SECONDS and fraction < 1:
                return False
        self._shown, self._shown_at = fraction, now
        return True


def fractions_of(
    on_progress: Callable[[float], None] | None, duration_seconds: float
) -> Callable[[float], None] | None:
    """Takes positions, and tells how much that is of the whole, not too often."""
    if on_progress is None:
        return None
    throttle = ProgressThrottle()

    def report(seconds: float) -> None:
        fraction = min(1.0, seconds / max(duration_seconds, 0.001))
        if throttle.admits(fraction, now=time.monotonic()):
            on_progress(fraction)

    return report
