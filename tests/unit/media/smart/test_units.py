import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.media.smart.order import Unfit
from worker.media.smart.units import by_start_code, joined, messages, units_of

UNITS = st.lists(st.binary(min_size=1, max_size=9).map(lambda unit: b"\x65" + unit.replace(b"\0", b"\7")))


@given(UNITS, st.sampled_from([1, 2, 4]))
def test_units_are_found_by_their_lengths(units, length_bytes):
    assert units_of(joined(units, length_bytes), length_bytes) == units


@given(UNITS, st.sampled_from([b"\0\0\1", b"\0\0\0\1"]))
def test_units_are_found_between_start_codes(units, code):
    assert list(by_start_code(b"".join(code + unit for unit in units))) == units


def test_a_length_beyond_the_packet_is_damage():
    with pytest.raises(Unfit, match="damaged picture"):
        units_of(b"\0\0\0\x09\x65", 4)


def test_messages_may_be_longer_than_a_byte_can_tell():
    payload = bytes([5, 255, 45]) + bytes(range(1, 101)) * 3 + bytes([6, 1, 0x84]) + b"\x80"
    assert [(kind, len(message)) for kind, message in messages(payload)] == [(5, 300), (6, 1)]
