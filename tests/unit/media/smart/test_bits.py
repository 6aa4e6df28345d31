from hypothesis import given
from hypothesis import strategies as st

from worker.media.smart.bits import Bits, ended, escaped, packed, plain, unsigned_code


@given(st.lists(st.sampled_from([0, 0, 0, 1, 2, 3, 4, 255])).map(bytes))
def test_escaped_payloads_hold_no_start_code_and_lose_nothing(payload):
    assert not any(code in escaped(payload) for code in (b"\0\0\0", b"\0\0\1", b"\0\0\2"))
    assert plain(escaped(payload)) == payload


@given(st.integers(0, 70_000), st.text("01", max_size=9))
def test_a_number_is_read_as_it_was_written_wherever_it_stands(number, before):
    bits = Bits(packed(before + unsigned_code(number)))
    bits.take(len(before))
    assert bits.unsigned() == number


@given(st.text("01", min_size=1, max_size=40))
def test_the_bit_that_ends_a_unit_is_no_part_of_its_content(content):
    assert Bits(ended(content)).content(0) == content


def test_signed_numbers_alternate():
    codes = [Bits(packed(unsigned_code(number))) for number in range(5)]
    assert [bits.signed() for bits in codes] == [0, 1, -1, 2, -2]
