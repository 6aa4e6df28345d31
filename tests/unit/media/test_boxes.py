from io import BytesIO

from hypothesis import given
from hypothesis import strategies as st

from worker.media.boxes import Box, walk_boxes


def box(kind: bytes, payload: bytes) -> bytes:
    return (8 + len(payload)).to_bytes(4, "big") + kind + payload


FTYP, MOOV, MDAT = box(b"ftyp", b"isom"), box(b"moov", bytes(100)), box(b"mdat", bytes(1000))
WHOLE = FTYP + MOOV + MDAT


def test_whole_file_lists_its_boxes():
    layout = walk_boxes(BytesIO(WHOLE))
    assert layout.boxes == (Box("ftyp", 0, 12), Box("moov", 12, 108), Box("mdat", 120, 1008))
    assert layout.cut_box is None


@given(st.integers(128, len(WHOLE) - 1))
def test_cut_inside_the_last_box_is_found(length):
    layout = walk_boxes(BytesIO(WHOLE[:length]))
    assert layout.cut_box is not None
    assert (layout.cut_box.kind, layout.file_bytes, layout.promised_bytes) == ("mdat", length, len(WHOLE))


def test_index_that_was_never_written_is_missing():
    layout = walk_boxes(BytesIO(FTYP + MDAT))
    assert layout.cut_box is None
    assert not layout.has("moov")


def test_large_box_has_its_size_in_eight_bytes():
    large = b"\0\0\0\1mdat" + (16 + 500).to_bytes(8, "big") + bytes(500)
    assert walk_boxes(BytesIO(FTYP + large + MOOV)).boxes[1] == Box("mdat", 12, 516)
    assert walk_boxes(BytesIO(FTYP + large[:300])).cut_box == Box("mdat", 12, 516)


def test_box_of_size_zero_reaches_to_the_end():
    layout = walk_boxes(BytesIO(FTYP + b"\0\0\0\0mdat" + bytes(77)))
    assert layout.boxes[-1] == Box("mdat", 12, 85)
    assert layout.cut_box is None


def test_rubbish_behind_the_last_box_is_no_cut():
    assert walk_boxes(BytesIO(WHOLE + b"\xff" * 64)).cut_box is None


@given(st.binary(max_size=200))
def test_any_bytes_end_the_walk(content):
    walk_boxes(BytesIO(content))


def test_other_files_have_no_boxes():
    assert not walk_boxes(BytesIO(b"RIFF....WAVEfmt ")).is_mp4
