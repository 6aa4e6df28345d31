"""The benchmark's parts on a source of four seconds: what they measure is tested, never how fast it is."""

import json
from dataclasses import replace
from pathlib import Path
from subprocess import run

import pytest

from bench.figures import Bound, Line, Target, as_json, as_markdown
from bench.media.__main__ import parse
from bench.media.bytes_line import LAYOUTS, measure_bytes
from bench.media.crowd_line import measure_crowd
from bench.media.exactness import examine
from bench.media.ground import Ground, Sizes
from bench.media.smart_line import measure_smart, measure_smart_long
from bench.media.source import NumberedSource, Recipe, ensure_source
from bench.media.throttle_line import measure_throttled
from bench.media.worker_line import measure_worker
from worker.domain.media import ClipRange
from worker.media.ffmpeg import find_ffmpeg

TINY = Sizes(
    source_seconds=4,
    short_seconds=1,
    long_seconds=2,
    places=(0.5,),
    talk_seconds=4,
    remote_seconds=8,
    rounds=1,
    crowd=2,
    crowd_seconds=1,
    origin_mbit=100,
)


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> NumberedSource:
    return ensure_source(Recipe(4, (320, 180)), tmp_path_factory.mktemp("source"), print)


@pytest.fixture
def ground(source: NumberedSource, tmp_path: Path) -> Ground:
    return Ground(TINY, find_ffmpeg(None), source, tmp_path, smartcut=None, tell=print)


@pytest.fixture
def cut(source: NumberedSource, tmp_path: Path):
    """The second from 1 s on, by ffmpeg, with its sound later than it should be."""

    def make(*, sound_late_seconds: float = 0.0) -> Path:
        path = tmp_path / "clip.mp4"
        opened = ["-ss", "1", "-t", "2", "-i", str(source.path)]
        late = ["-itsoffset", str(sound_late_seconds), *opened]
        quick = ["-map", "0:v", "-map", "1:a", "-preset", "ultrafast", "-y", str(path)]
        run([str(find_ffmpeg(None)), "-v", "error", *opened, *late, *quick], check=True, timeout=20)
        return path

    return make


def test_a_right_clip_is_found_right(cut, source):
    found = examine(cut(), source, ClipRange(1.0, 3.0))
    assert found.frames_off == 0
    assert found.sync_ms == pytest.approx(0, abs=0.5)


def test_a_clip_that_is_frames_off_is_found_so(cut, source):
    found = examine(cut(), source, ClipRange(1.0 + 1 / 30, 3.0 - 2 / 30))
    assert (found.first_off, found.last_off, found.breaks) == (-1, 2, 0)


def test_sound_that_is_late_is_found_so(cut, source):
    found = examine(cut(sound_late_seconds=0.03), source, ClipRange(1.0, 3.0))
    assert found.sync_ms == pytest.approx(30, abs=1)


async def test_smart_clips_are_measured_beside_a_reencode(ground):
    for line in [*await measure_smart(ground), *await measure_smart_long(ground)]:
        assert [row[""] for row in line.rows] == ["clipboss smart", "ffmpeg veryfast"]
        assert all(row["CPU s"] > 0 and row["MB read"] > 0 for row in line.rows)
        assert {target.what: target.is_met for target in line.targets} == {
            "frames off": True,
            "sound against picture": True,
        }


async def test_bytes_are_counted_for_every_layout_of_a_remote_file(ground):
    (line,) = await measure_bytes(ground)
    assert [(row[""], row["frames off"]) for row in line.rows] == [(layout, 0) for layout in LAYOUTS]
    assert len(line.targets) == len(LAYOUTS)


async def test_slow_origin_is_read_by_both(ground):
    (line,) = await measure_throttled(ground)
    assert all(row["MB read"] > 0 for row in line.rows)


async def test_job_through_the_worker_is_taken_apart(ground, dsn):
    compared, steps = await measure_worker(replace(ground, database_url=dsn))
    assert [target.what for target in compared.targets] == ["wall of the bare command", "overhead besides ffmpeg"]
    by_name = {row["step"]: row for row in steps.rows}
    assert {"resolve", "clip", "upload", "asr", "finalize"} <= set(by_name)
    assert "ffmpeg" in str(by_name["clip"]["of these in children"])
    # all of the job's time is somewhere
    whole = float(str(compared.rows[0]["wall s"])) * 1000
    assert sum(int(str(row["ms"])) for row in steps.rows) == pytest.approx(whole, abs=len(steps.rows))


async def test_crowd_is_measured_beside_its_own_commands(ground, dsn):
    (line,) = await measure_crowd(replace(ground, database_url=dsn))
    assert all(row["wall s"] > 0 and row["CPU s"] > 0 for row in line.rows)


def test_report_tells_which_targets_are_missed():
    line = Line("x", "Title", [{"": "ours", "CPU s": 1.25}], [Target("less CPU", 3.0, Bound.AT_LEAST, 4)])
    assert "| less CPU | 3.00 x   | ≥ 4 x  | FAIL |" in as_markdown([line])
    assert json.loads(json.dumps(as_json([line], seed=7)))["lines"][0]["targets"][0]["met"] is False


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--lines", "nope"], "no such line: nope"),
        (["--size", "big"], "1280x720"),
        (["--minutes", "0.2"], "multiple of 8"),
    ],
)
def test_wrong_options_are_told_in_a_line(capsys, arguments, complaint):
    with pytest.raises(SystemExit):
        parse(arguments)
    assert complaint in capsys.readouterr().err
