import pytest

from worker.media.join_sets import Unlike, read_sets, refuse_unlike

SPS, PPS, KEY, DELIMITER = b"\x67\x64\x00\x0a\x01", b"\x68\xee", b"\x65\x88", b"\x09\x10"
RECORD = b"\x01\x64\x00\x0a\xff\xe1" + b"\x00\x05" + SPS + b"\x01\x00\x02" + PPS


def packed(*units: bytes) -> bytes:
    return b"".join(len(unit).to_bytes(4, "big") + unit for unit in units)


def test_sets_come_first_in_a_picture_but_for_its_delimiter():
    sets = read_sets(RECORD, "h264", (160, 90))
    assert sets.before(packed(KEY)) == packed(SPS, PPS, KEY)
    assert sets.before(packed(DELIMITER, b"\x67old", b"\x68old", KEY)) == packed(DELIMITER, SPS, PPS, KEY)


def test_equal_records_need_no_telling():
    assert read_sets(RECORD, "h264", (160, 90)) == read_sets(RECORD + b"\xfd\xf8\xf8\x00", "h264", (160, 90))
    assert read_sets(RECORD, "h264", (160, 90)) != read_sets(RECORD.replace(b"\xee", b"\xef"), "h264", (160, 90))


def test_pages_that_cannot_be_one_track_are_refused():
    page = read_sets(RECORD, "h264", (160, 90))
    refuse_unlike([page, page])
    with pytest.raises(Unlike, match="page 1 is 80 x 90 instead of 160 x 90"):
        refuse_unlike([page, read_sets(RECORD, "h264", (80, 90))])
    with pytest.raises(Unlike, match="page 1 tells the lengths of its units in 2 bytes"):
        refuse_unlike([page, read_sets(RECORD[:4] + b"\xfd" + RECORD[5:], "h264", (160, 90))])
    for record, codec in ((RECORD, "hevc"), (b"", "h264"), (b"\x00\x00\x00\x01" + SPS, "h264")):
        with pytest.raises(Unlike, match=f"coded as {codec}"):
            read_sets(record, codec, (160, 90))
