"""A waveform in numbers."""

import json
import wave
from pathlib import Path

import numpy as np
import pytest

from worker.errors import OutputCorrupt
from worker.media.peaks import waveform_of, write_waveform


def speech(path: Path, samples: np.ndarray) -> Path:
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16_000)
        sound.writeframes(samples.astype("<i2").tobytes())
    return path


def test_each_twentieth_of_a_second_has_its_lowest_and_highest(tmp_path: Path):
    samples = np.zeros(2000)
    samples[100], samples[700], samples[1700] = 32767, -32768, 2560
    found = waveform_of(speech(tmp_path / "s.wav", samples))
    assert (found["length"], found["data"]) == (3, [-128, 127, 0, 0, 0, 10])
    assert (found["sample_rate"], found["samples_per_pixel"], found["bits"]) == (16_000, 800, 8)


def test_long_sound_is_read_in_pieces_without_a_seam(tmp_path: Path):
    samples = np.repeat(np.arange(5000) % 100, 800) * 256
    found = waveform_of(speech(tmp_path / "s.wav", samples))
    assert found["data"] == [value for number in range(5000) for value in (number % 100,) * 2]


def test_file_is_the_json_that_players_read(tmp_path: Path):
    write_waveform(speech(tmp_path / "s.wav", np.zeros(800)), tmp_path / "w.json")
    assert json.loads((tmp_path / "w.json").read_text())["version"] == 2


def test_what_is_no_sound_is_found(tmp_path: Path):
    (tmp_path / "s.wav").write_bytes(b"RIFF")
    with pytest.raises(OutputCorrupt):
        waveform_of(tmp_path / "s.wav")
