import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.media.progress import ProgressParser, ProgressThrottle


def report(microseconds: object) -> bytes:
    return f"frame=10\nfps=9.9\ntotal_size=48\nout_time_us={microseconds}\nout_time=x\nprogress=continue\n".encode()


def test_last_report_of_a_read_counts():
    assert ProgressParser().feed(report(1_000_000) + report(2_500_000)) == 2.5


def test_report_without_a_position_falls_back_to_the_one_before():
    assert ProgressParser().feed(report(1_000_000) + report("N/A")) == 1.0


@pytest.mark.parametrize("text", [b"", b"\n", b"out_time_us=", b"out_time_us=N/A\n", b"out_time_us=\n", b"\xff\xfe\n"])
def test_nothing_usable_gives_none(text):
    assert ProgressParser().feed(text) is None


def test_time_before_zero_is_zero():
    assert ProgressParser().feed(report(-21_333)) == 0.0


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=5), st.integers(1, 40))
def test_reports_may_be_torn_anywhere(positions, size):
    stream = b"".join(report(position) for position in positions)
    parser = ProgressParser()
    seen = [parser.feed(stream[at : at + size]) for at in range(0, len(stream), size)]
    assert [value for value in seen if value is not None][-1] == positions[-1] / 1_000_000


def test_endless_line_does_not_grow_memory():
    parser = ProgressParser()
    for _ in range(100):
        parser.feed(b"x" * 10_000)
    assert parser.feed(b"\n" + report(3_000_000)) == 3.0


@pytest.mark.parametrize(
    ("fraction", "now", "expected"),
    [
        (0.105, 0.1, False),
        (0.11, 0.1, True),
        (0.105, 0.5, True),
        (0.10, 9.0, False),
        (0.05, 9.0, False),
    ],
)
def test_throttle_lets_through_a_point_or_half_a_second(fraction, now, expected):
    throttle = ProgressThrottle()
    assert throttle.admits(0.10, now=0.0)
    assert throttle.admits(fraction, now=now) is expected


def test_throttle_always_shows_the_end_once():
    throttle = ProgressThrottle()
    throttle.admits(0.999, now=0.0)
    assert [throttle.admits(1.0, now=0.01), throttle.admits(1.0, now=9.0)] == [True, False]
