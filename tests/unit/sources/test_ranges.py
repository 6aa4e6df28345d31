"""Range headers, pure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.sources.ranges import ByteRange, UnsatisfiableRangeError, delivered_range, requested_range


@pytest.mark.parametrize(
    ("header", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=0-", 0, 100),
        ("bytes=10-19", 10, 20),
        ("bytes=99-", 99, 100),
        ("bytes=50-5000", 50, 100),
        ("bytes=-1", 99, 100),
        ("bytes=-500", 0, 100),
    ],
)
def test_range_is_understood(header: str, start: int, end: int) -> None:
    assert requested_range(header, 100) == ByteRange(start, end)


@pytest.mark.parametrize(
    "header",
    [None, "", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-2", "bytes=0-1,5-6", "bytes=\u0661-\u0662"],
)
def test_what_is_no_single_range_means_everything(header: str | None) -> None:
    assert requested_range(header, 100) is None


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=100-200", "bytes=-0"])
def test_range_outside_is_unsatisfiable(header: str) -> None:
    with pytest.raises(UnsatisfiableRangeError):
        requested_range(header, 100)


@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 200))
def test_a_served_range_lies_inside_the_source(first: int, last: int, size: int) -> None:
    try:
        served = requested_range(f"bytes={first}-{last}", size)
    except UnsatisfiableRangeError:
        assert first >= size
        return
    if served is not None:
        assert 0 <= served.start < served.end <= size


def test_content_range_tells_part_and_whole() -> None:
    assert delivered_range("bytes 5-9/100") == (ByteRange(5, 10), 100)


@pytest.mark.parametrize("header", [None, "", "bytes */100", "bytes 0-0/*", "bytes 5-9", "5-9/100"])
def test_content_range_that_does_not_tell(header: str | None) -> None:
    assert delivered_range(header) is None
