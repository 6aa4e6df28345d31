"""How far a read runs ahead of its reader: not at all at first, further the longer it goes straight on."""

from dataclasses import dataclass
from typing import Final

#: less is not worth a request; more is wasted on readers that only look at a header and seek on
LEAST_PIECE_BYTES: Final = 128 * 1024
#: a connection that breaks or is dropped loses no more than this
MOST_PIECE_BYTES: Final = 1024 * 1024
MOST_IN_FLIGHT: Final = 8
#: of what was read without a seek, this part may be fetched in vain when the reader stops
_AHEAD_DIVISOR: Final = 6


@dataclass(slots=True)
class Window:
    """Shared by all reads of an open source, because an origin that is too busy is so for each of them."""

    most_in_flight: int = MOST_IN_FLIGHT

    def narrow(self) -> None:
        """The origin said it is too much. It is not asked again how much would be right: the job ends soon enough."""
        self.most_in_flight = max(1, self.most_in_flight // 2)

    def next_piece_bytes(self, *, taken: int, outstanding: int, in_flight: int, waiting: int) -> int:
        """The size of the request to send now, 0 for none.

        `taken` bytes were fetched and read in a row; `outstanding` were asked for and not read yet, in `in_flight`
        requests that still run, `waiting` that have ended, and the one that is being read.
        """
        if outstanding == 0:
            return _piece_bytes(taken)
        # a reader that is slower than the origin needs nothing beyond the next piece
        if waiting or in_flight >= self.most_in_flight or outstanding + _piece_bytes(taken) > _ahead_bytes(taken):
            return 0
        return _piece_bytes(taken)


def _ahead_bytes(taken: int) -> int:
    return min(MOST_IN_FLIGHT * MOST_PIECE_BYTES, max(LEAST_PIECE_BYTES, taken // _AHEAD_DIVISOR))


def _piece_bytes(taken: int) -> int:
    # many small requests rather than few large ones: an origin is slow on each connection, and a reader may stop
    return min(MOST_PIECE_BYTES, max(LEAST_PIECE_BYTES, _ahead_bytes(taken) // MOST_IN_FLIGHT))
