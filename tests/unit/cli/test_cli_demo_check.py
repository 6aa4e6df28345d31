"""The demo's own check finds a clip that is off by a single frame."""

from collections.abc import Callable
from pathlib import Path

import pytest

from worker.cli.demo_jobs import DemoJob, check_clip
from worker.jobs.desk import JobDetail
from worker.media.sample import make_sample


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frames 0 … 29."""
    return make_sample(tmp_path_factory.mktemp("clip") / "a b.mp4", seconds=1, size=(320, 180), speech=False)


def job_with(make_job: Callable[..., JobDetail], path: Path) -> JobDetail:
    return make_job(result={"artifacts": [{"kind": "clip", "url": path.as_uri()}]})


def test_expected_frames_are_those_shown_from_start_until_before_end() -> None:
    assert DemoJob("", 3.21, 8.5, {}).expected_frames == (97, 254)
    assert DemoJob("", 0.1, 0.2, {}).expected_frames == (3, 5)


@pytest.mark.parametrize(
    ("start", "end", "is_right"), [(0, 1, True), (0, 1.01, False), (0.01, 1, False), (0, 0.9, False)]
)
def test_one_frame_too_many_or_too_few_is_found(
    make_job: Callable[..., JobDetail], clip: Path, start: float, end: float, is_right: bool
) -> None:
    assert check_clip(DemoJob("", start, end, {}), job_with(make_job, clip)).is_right is is_right


def test_clip_that_is_missing_or_broken_is_found(make_job: Callable[..., JobDetail], tmp_path: Path) -> None:
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"not media")
    demo = DemoJob("", 0, 1, {})
    jobs = [make_job(), job_with(make_job, tmp_path / "gone.mp4"), job_with(make_job, broken)]
    assert [check_clip(demo, job).is_right for job in jobs] == [False, False, False]
