"""How far a read runs ahead."""

import pytest

from worker.sources.window import LEAST_PIECE_BYTES, MOST_IN_FLIGHT, MOST_PIECE_BYTES, Window

MEGABYTE = 1 << 20


def requests_at(window: Window, taken: int) -> list[int]:
    """What is under way when the origin is slow and the reader has taken so many bytes."""
    sizes = list[int]()
    while size := window.next_piece_bytes(taken=taken, outstanding=sum(sizes), in_flight=len(sizes), waiting=0):
        sizes.append(size)
    return sizes


def test_first_look_costs_one_small_request() -> None:
    assert requests_at(Window(), 0) == [LEAST_PIECE_BYTES]


@pytest.mark.parametrize(
    ("taken", "count", "size"),
    [
        (MEGABYTE, 1, LEAST_PIECE_BYTES),
        (3 * MEGABYTE // 2, 2, LEAST_PIECE_BYTES),
        (3 * MEGABYTE, 4, LEAST_PIECE_BYTES),
        (6 * MEGABYTE, 8, LEAST_PIECE_BYTES),
        (48 * MEGABYTE, 8, MOST_PIECE_BYTES),
        (1 << 40, 8, MOST_PIECE_BYTES),
    ],
)
def test_window_opens_while_the_reader_goes_on(taken: int, count: int, size: int) -> None:
    assert requests_at(Window(), taken) == [size] * count


@pytest.mark.parametrize("taken", range(0, 64 * MEGABYTE, 777_777))
def test_no_more_than_a_sixth_of_what_was_read_is_risked(taken: int) -> None:
    assert sum(requests_at(Window(), taken)) <= max(LEAST_PIECE_BYTES, taken // 6)


def test_finished_pieces_that_nobody_took_hold_back_new_ones() -> None:
    far = MOST_IN_FLIGHT * MOST_PIECE_BYTES
    assert Window().next_piece_bytes(taken=1 << 40, outstanding=far, in_flight=0, waiting=0) == 0


def test_busy_origin_is_asked_for_less_each_time_but_never_for_nothing() -> None:
    window = Window()
    seen = []
    for _ in range(5):
        window.narrow()
        seen.append(len(requests_at(window, 1 << 40)))
    assert seen == [4, 2, 1, 1, 1]


def test_reader_that_is_slower_than_the_origin_has_one_piece_in_store() -> None:
    assert Window().next_piece_bytes(taken=1 << 40, outstanding=MEGABYTE, in_flight=0, waiting=1) == 0
