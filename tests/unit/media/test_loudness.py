"""What the meter wrote, and what is done about it."""

from pathlib import Path

import pytest

from worker.domain.media import Loudness
from worker.errors import OutputCorrupt
from worker.media.loudness import gain_for, read_report

REPORT = """frame:0    pts:0       pts_time:0
lavfi.r128.M=-120.7
lavfi.r128.I=-70.000
lavfi.r128.LRA=0.000
lavfi.r128.true_peaks_ch0=0.000
frame:1    pts:4800    pts_time:0.1
lavfi.r128.M=-20.0
lavfi.r128.I=-23.488
lavfi.r128.LRA=20.650
lavfi.r128.LRA.low=-39.230
lavfi.r128.true_peaks_ch0=0.250
lavfi.r128.true_peaks_ch1=0.500
"""


def test_only_the_last_block_tells_about_all_of_it(tmp_path: Path):
    (tmp_path / "report").write_text("frame:x\nlavfi.r128.I=-5\n" * 2000 + REPORT)
    assert read_report(tmp_path / "report") == Loudness(-23.488, 20.65, -6.02)


@pytest.mark.parametrize("text", ["", "frame:0\nlavfi.r128.M=-3\n", REPORT.replace("-23.488", "nothing")])
def test_report_that_tells_nothing_is_no_measurement(tmp_path: Path, text: str):
    (tmp_path / "report").write_text(text)
    with pytest.raises(OutputCorrupt, match="how loud"):
        read_report(tmp_path / "report")
    with pytest.raises(OutputCorrupt, match="not written"):
        read_report(tmp_path / "missing")


def test_silence_has_no_peak(tmp_path: Path):
    (tmp_path / "report").write_text(REPORT[: REPORT.index("frame:1")].replace("-70.000", "-inf"))
    assert read_report(tmp_path / "report") == Loudness(-70.0, 0.0, None)


@pytest.mark.parametrize(
    ("measured", "target", "filters"),
    [
        (Loudness(-23.0, 5.0, -10.0), -16, ["volume"]),
        (Loudness(-12.0, 5.0, 0.5), -16, ["volume"]),
        (Loudness(-23.0, 5.0, -3.0), -16, ["loudnorm"]),
        (Loudness(-70.0, 0.0, None), -16, []),
    ],
    ids=["room above", "quieter", "peaks in the way", "silence"],
)
def test_sound_is_only_compressed_where_a_factor_would_clip(measured, target, filters):
    assert [name for name, _ in gain_for(measured, target).filters] == filters


def test_factor_is_the_difference():
    [(_, options)] = gain_for(Loudness(-23.5, 5.0, -10.0), -16.0).filters
    assert options["volume"] == "7.50dB"
