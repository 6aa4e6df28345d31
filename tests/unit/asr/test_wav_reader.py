"""Reading sound piece by piece."""

import wave
from pathlib import Path

import numpy as np
import pytest

from worker.asr.wav import BadWavError, open_wav


def write_wav(path: Path, samples: list[int], *, rate: int = 16000, channels: int = 1, width: int = 2) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, width, rate, 0, "NONE", ""))
        file.writeframes(np.array(samples, dtype={1: "u1", 2: "<i2"}[width]).tobytes())
    return path


def test_levels_cover_the_file_and_samples_come_from_the_asked_times(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "a.wav", [0] * 320 + [16384] * 320 + [0] * 320)

    with open_wav(path) as wav:
        assert wav.levels().tolist() == pytest.approx([-120.0, -6.02, -120.0], abs=0.01)
        assert wav.samples(0.02, 0.04).tolist() == [0.5] * 320
        assert wav.samples(0.05, 9).tolist() == [0.0] * 160
        assert wav.duration_seconds == pytest.approx(0.06)
        assert [len(block) for block in wav.blocks(500)] == [500, 460]


def test_file_longer_than_one_read_gives_the_same_levels(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "a.wav", [100] * (16000 * 130))

    with open_wav(path) as wav:
        assert len(wav.levels()) == 130 * 50


@pytest.mark.parametrize("content", [b"", b"RIFF", b"not a wav file at all", b"RIFF\x00\x00\x00\x00WAVE"])
def test_garbage_is_refused_in_words(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(content)

    with pytest.raises(BadWavError, match=r"\w+"), open_wav(path):
        pass


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadWavError, match="No such file"), open_wav(tmp_path / "absent.wav"):
        pass


@pytest.mark.parametrize(("channels", "width"), [(2, 2), (1, 1)])
def test_stereo_and_8_bit_are_refused(tmp_path: Path, channels: int, width: int) -> None:
    path = write_wav(tmp_path / "a.wav", [1] * 100, channels=channels, width=width)

    with pytest.raises(BadWavError, match="not one of 16"), open_wav(path):
        pass


def test_file_cut_off_in_the_middle_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "a.wav", [100] * 16000)
    path.write_bytes(path.read_bytes()[:-8001])

    with open_wav(path) as wav:
        assert 0 < len(wav.levels()) < 50
