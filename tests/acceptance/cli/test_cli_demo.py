"""`demo` keeps its promises with nothing configured."""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.acceptance.cli.conftest import CommandLine, Finished
from worker.cli.demo_jobs import JOBS, SAMPLE_NAME
from worker.domain.job import StageName


@pytest.fixture(scope="module")
def embedded(bare_directory: Path) -> CommandLine:
    return CommandLine(bare_directory)


@pytest.fixture(scope="module")
def demo(embedded: CommandLine) -> Iterator[Finished]:
    """Run once for all tests here, with settings that it must not follow."""
    return asyncio.run(
        embedded("demo", "--json", DATABASE_URL="postgresql://nobody@127.0.0.1:1/none", STORAGE_URL="s3://none")
    )


def test_demo_prints_nothing_but_one_json_object(demo: Finished) -> None:
    assert (demo.code, list(demo.value)) == (0, ["jobs"]), demo.err


def test_demo_says_that_it_ignores_what_is_configured(demo: Finished) -> None:
    assert "not using DATABASE_URL and STORAGE_URL" in demo.err


def test_demo_finishes_three_jobs_with_words_and_timings(demo: Finished) -> None:
    jobs = demo.value["jobs"]
    assert [job["status"] for job in jobs] == ["done"] * 3
    assert all(set(job["timings_ms"]) == set(StageName) for job in jobs)
    assert all("it was the" in job["transcript"].lower() for job in jobs)
    wanted = [(one.end - one.start) * 1000 for one in JOBS]
    assert [job["duration_ms"] for job in jobs] == pytest.approx(wanted, abs=40)


def test_artifacts_of_the_demo_are_what_it_says_they_are(demo: Finished) -> None:
    kinds = [[artifact["kind"] for artifact in job["artifacts"]] for job in demo.value["jobs"]]
    speech = ["transcript", "srt", "vtt", "text"]
    assert kinds == [["clip", "poster", *speech]] * 2 + [["clip", *speech]]
    for artifact in (artifact for job in demo.value["jobs"] for artifact in job["artifacts"]):
        content = Path(unquote(urlsplit(artifact["url"]).path)).read_bytes()
        assert artifact["bytes"] == len(content)
        assert artifact["sha256"] == hashlib.sha256(content).hexdigest()


def test_demo_keeps_its_sample_and_leaves_nothing_half_made(demo: Finished, bare_directory: Path) -> None:
    left = sorted(path.name for path in (bare_directory / "scratch" / "demo").iterdir())
    assert (demo.code, left) == (0, ["artifacts", SAMPLE_NAME])


async def test_jobs_of_the_demo_can_be_looked_at_afterwards(demo: Finished, embedded: CommandLine) -> None:
    job_id = demo.value["jobs"][2]["id"]
    shown = await embedded("jobs", "show", job_id)
    assert shown.code == 0
    assert "using the embedded PostgreSQL in" in shown.err
    assert all(word in shown.out for word in (job_id, "done", "clip.m4a", "timeline", "stage:finished"))
    assert json.dumps(demo.value["jobs"][2]["transcript"])[1:20] in shown.out
