import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker.media.frame_code import NUMBER_BITS, paint_frame_number, read_frame_number
from worker.media.picture import SamplePicture


def painted(number: int, size: tuple[int, int] = (360, 640)) -> np.ndarray:
    picture = np.full((*size, 3), 90, dtype=np.uint8)
    paint_frame_number(picture, number)
    return picture


@settings(max_examples=50)
@given(st.integers(0, 2**NUMBER_BITS - 1))
def test_number_is_read_back(number):
    assert read_frame_number(painted(number)) == number


@pytest.mark.parametrize("size", [(90, 160), (180, 320), (361, 641), (720, 406), (1080, 1920)])
def test_number_is_read_at_any_size(size):
    assert read_frame_number(painted(54_321, size)) == 54_321


@settings(max_examples=20)
@given(st.integers(0, 2**NUMBER_BITS - 1), st.integers(0, 2**32 - 1))
def test_number_survives_noise_and_less_contrast(number, seed):
    noise = np.random.default_rng(seed).normal(0, 20, (360, 640))
    worn = np.clip(painted(number).mean(axis=2) * 0.7 + 30 + noise, 0, 255).astype(np.uint8)
    assert read_frame_number(worn) == number


def test_picture_without_a_strip_has_no_number():
    assert read_frame_number(np.full((360, 640), 128, dtype=np.uint8)) is None


def test_damaged_strip_has_no_number():
    picture = painted(1234)
    picture[-20:, 300:340] = 255 - picture[-20:, 300:340]
    assert read_frame_number(picture) is None


def test_blend_of_two_frames_is_never_taken_for_a_third():
    for number in range(300):
        blend = (painted(number, (36, 64)) * 0.6 + painted(number + 1, (36, 64)) * 0.4).astype(np.uint8)
        assert read_frame_number(blend) in {number, None}


@pytest.mark.parametrize("size", [(160, 90), (320, 180), (640, 360)])
def test_every_drawn_frame_tells_its_number_and_moves(size):
    picture = SamplePicture(size, fps=30)
    drawn = [picture.draw(number) for number in (0, 1, 899)]
    assert [read_frame_number(frame) for frame in drawn] == [0, 1, 899]
    assert all(frame.shape == (size[1], size[0], 3) for frame in drawn)
    body = [frame[: size[1] * 9 // 10] for frame in drawn]
    assert not np.array_equal(body[0], body[1])
