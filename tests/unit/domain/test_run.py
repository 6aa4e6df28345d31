"""What a run says of its partitions, and that its plan comes back from JSON as it was."""

import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.domain.job import JobId, JobStatus
from worker.domain.media import AudioStream, ClipRange, Probe, VideoStream
from worker.domain.paging import PageKind, PageRef
from worker.domain.run import FinishedPage, Partition, Run, RunPlan, newest, plan_from_json, plan_json

RUN = JobId(UUID(int=7))
PROBE = Probe("mp4", 60.0, -0.04, VideoStream("h264", 320, 180, 25.0, 90, 1, 0.2), AudioStream("aac", 48000, 2, 0, 0.1))
PLAN = RunPlan((0.0, 10.0, 20.0), PROBE, "talk.mp4", 1000, '"tag"', "no keyframes")


def partition(next_: int = 0, status: JobStatus | None = None, id_: int = 0, **more: Any) -> Partition:
    return Partition(id_, more.pop("kind", PageKind.PICTURES), 0, 2, next_, more.pop("heights", (0,)), status, **more)


def run_of(*partitions: Partition) -> Run:
    return Run(RUN, PLAN, partitions)


@pytest.mark.parametrize("plan", [PLAN, RunPlan((1.5, 2.5), Probe("ogg", 9.0, 0.0, None, None), "a", 1, None)])
def test_plan_survives_the_database(plan: RunPlan) -> None:
    assert plan_from_json(json.loads(json.dumps(plan_json(plan)))) == plan


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=50, unique=True).map(sorted))
def test_borders_are_the_same_floats_afterwards(borders: list[float]) -> None:
    plan = RunPlan(tuple(borders), PROBE, "a", 1, None)
    assert plan_from_json(json.loads(json.dumps(plan_json(plan)))).borders == tuple(borders)
    assert plan.wanted == ClipRange(borders[0], borders[-1])


@pytest.mark.parametrize(
    ("next_", "status", "expected"),
    [
        (0, None, "idle"),
        (0, JobStatus.DONE, "idle"),
        (0, JobStatus.QUEUED, "under way"),
        (1, JobStatus.PROCESSING, "under way"),
        (1, JobStatus.FAILED, "failed"),
        (1, JobStatus.CANCELLED, "failed"),
        (2, None, "complete"),
        (2, JobStatus.FAILED, "complete"),
        (2, JobStatus.DONE, "complete"),
    ],
)
def test_a_partition_is_exactly_one_of_these(next_: int, status: JobStatus | None, expected: str) -> None:
    found = partition(next_, status)
    is_ = {"idle": found.is_idle, "failed": found.has_failed, "complete": found.is_complete}
    assert [name for name, holds in is_.items() if holds] == ([expected] if expected != "under way" else [])


def test_a_run_counts_all_its_pages() -> None:
    run = run_of(partition(1, JobStatus.QUEUED), partition(2, id_=1))
    assert (run.pages, run.finished_pages, run.is_complete, run.failed, run.idle) == (4, 3, False, None, [])
    assert run_of(partition(2), partition(2, id_=1)).is_complete


def test_a_run_names_who_failed_first_and_who_got_lost() -> None:
    broken = partition(1, JobStatus.FAILED, 1, page_code="CLIP_FAILED")
    run = run_of(partition(0, None), broken, partition(1, JobStatus.DONE, 2))
    assert run.failed is broken
    assert run.idle == [PageRef(RUN, 0, 0), PageRef(RUN, 2, 1)]


def test_a_run_knows_what_its_pages_make() -> None:
    run = run_of(partition(heights=(0, 360)), partition(kind=PageKind.SPEECH, heights=()))
    assert run.has(PageKind.PICTURES)
    assert run.has(PageKind.PICTURES, 360)
    assert run.has(PageKind.SPEECH)
    assert not run.has(PageKind.PICTURES, 720)
    assert not run.has(PageKind.SOUND)


def made(partition_: int, offset: int, *heights: int, kind: PageKind = PageKind.PICTURES) -> FinishedPage:
    return FinishedPage(kind, partition_, offset, {"pictures": [{"height": height} for height in heights]})


@given(st.permutations([made(0, 0, 0), made(0, 1, 0, 360), made(1, 2, 0), made(2, 1, 0), made(3, 1, 360)]))
def test_of_a_page_that_was_made_again_the_last_counts(pages: list[FinishedPage]) -> None:
    others = [made(9, 0, kind=PageKind.SPEECH)]
    assert [page.partition for page in newest(pages + others, PageKind.PICTURES, height=0).values()] == [0, 2, 1]
    assert list(newest(pages, PageKind.PICTURES, height=0)) == [0, 1, 2]
    assert [page.partition for page in newest(pages, PageKind.PICTURES, height=360).values()] == [3]
    assert list(newest(others, PageKind.SPEECH)) == [0]
