"""A job in a few words."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from worker.cli.present import age, describe, first_words, local_name, readable_bytes, tries
from worker.cli.watch import stage_words
from worker.domain.job import JobStatus
from worker.jobs.desk import JobDetail


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"source": "https://example.com/a/talk.mp4?key=secret"}, "talk.mp4"),
        ({"source": "s3://bucket/a%20b.mp4", "start": 1.5, "end": "0:03"}, "a b.mp4 1.5..0:03"),
        ({"source": "x.mp4", "end": 3, "max_height": 180, "mode": "exact"}, "x.mp4 0..3 exact ≤180p"),
        ({"source": 5}, "5"),
        ({}, "no source"),
        ([1], "not a job spec"),
        (None, "not a job spec"),
        ({"run": "98951520-a328-4009-bcca-8a13f2531ece", "partition": 3, "offset": 7}, "page 3:7 of 98951520"),
    ],
)
def test_any_spec_can_be_described(spec: Any, words: str) -> None:
    assert describe(spec) == words


def test_attempt_that_runs_is_counted(make_job: Callable[..., JobDetail]) -> None:
    assert tries(make_job()) == 0
    assert tries(make_job(status=JobStatus.PROCESSING, attempt_count=1)) == 2
    assert tries(make_job(status=JobStatus.FAILED, attempt_count=3)) == 3


def test_stage_words_tell_why_a_job_waits(make_job: Callable[..., JobDetail]) -> None:
    assert stage_words(make_job()) == "queued"
    assert stage_words(make_job(error_code="CLIP_TIMEOUT")) == "waits to be tried again (CLIP_TIMEOUT)"
    assert stage_words(make_job(status=JobStatus.PROCESSING, stage="clip")) == "clip"
    assert stage_words(make_job(status=JobStatus.FAILED, error_code="CLIP_FAILED")) == "failed: CLIP_FAILED"


def test_sizes_ages_and_words_are_short() -> None:
    assert [readable_bytes(size) for size in (0, 999, 1234, 45_600_000, 7_800_000_000)] == [
        "0 B",
        "999 B",
        "1.2 kB",
        "46 MB",
        "7.8 GB",
    ]
    assert [age(timedelta(seconds=span)) for span in (-5, 59, 61, 7300, 200_000)] == ["0s", "59s", "1m", "2h", "2d"]
    assert first_words("one two  three", most=8) == "one two …"


def test_file_is_named_as_a_person_can_open_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert local_name((tmp_path / "a b" / "c.mp4").as_uri()) == "a b/c.mp4"
    assert local_name("file:///elsewhere/c.mp4") == "/elsewhere/c.mp4"
    assert local_name("s3://bucket/c.mp4") == "s3://bucket/c.mp4"
