"""Long jobs through whole workers: what comes of pages cannot be told from what is made in one piece."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from bench.asr.words import score
from bench.pages.source import make_lecture
from tests.acceptance.worker.test_main_job import s3_env
from tests.long_media import Decoded, decode, events, files_of, finished, kinds_of, most_at_once, result_of
from tests.processes import Bench
from tests.servers import S3Server
from worker.domain.job import JobStatus
from worker.media.sample import make_sample

SECONDS, FPS = 48, 25
EVERYTHING = {"sprite": {"columns": 4}, "waveform": True, "renditions": [72, 60]}
#: true of a clip whatever way it was made
FACTS = ("mode", "start", "end", "start_off_ms", "end_off_ms", "duration_ms", "frames", "width", "height", "loudness")


@pytest.fixture(scope="session")
def long_talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sample(tmp_path_factory.mktemp("long") / "talk.mp4", seconds=SECONDS, fps=FPS, size=(160, 90))


@pytest.fixture(scope="session")
def lecture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So long that a word in a hundred can be told."""
    return make_lecture(tmp_path_factory.mktemp("lecture") / "talk.mp4", seconds=130, fps=10, size=(160, 90))


async def both_ways(bench: Bench, source: Path, pages: dict[str, Any], **spec: Any) -> tuple[UUID, UUID]:
    wanted = {"source": source.as_uri(), "transcript": False, **spec}
    return await bench.submit(**wanted, pages="never"), await bench.submit(**wanted, pages=pages)


async def work_off(bench: Bench, source: Path, *jobs: UUID, seconds: float = 80, **env: str) -> list[dict[str, Any]]:
    """Let a worker end them; their results."""
    with bench.worker(LOCAL_SOURCE_ROOTS=str(source.parent), **env):
        for job_id in jobs:
            await bench.wait_for(job_id, JobStatus.DONE, JobStatus.FAILED, seconds=seconds)
    return [await result_of(bench, job_id) for job_id in jobs]


def require_same_clip(whole: Decoded, paged: Decoded) -> None:
    assert paged.times == whole.times
    assert paged.numbers == whole.numbers
    assert paged.samples.shape == whole.samples.shape
    assert np.array_equal(paged.samples, whole.samples)


@pytest.mark.timeout(120)
async def test_exact_job_in_pages_makes_what_it_makes_in_one_piece(bench: Bench, long_talk: Path) -> None:
    span = {"start": 2.5, "end": 46.7}
    one, split = await both_ways(bench, long_talk, {"seconds": 7, "partitions": 3}, mode="exact", **span, **EVERYTHING)
    whole, paged = await work_off(bench, long_talk, one, split)
    assert {name: paged.get(name) for name in FACTS} == {name: whole.get(name) for name in FACTS}
    assert kinds_of(paged) == kinds_of(whole)
    assert paged["pages"] == 1 + 7, "the sound, and seven of pictures"
    assert "pages" not in whole
    files, files_in_one = files_of(paged), files_of(whole)
    for name in ("clip.mp4", "clip-72.mp4", "clip-60.mp4"):
        clip = decode(files[name])
        require_same_clip(decode(files_in_one[name]), clip)
        assert clip.numbers == list(range(63, 1168)), name
    assert json.loads(files["waveform.json"].read_text()) == json.loads(files_in_one["waveform.json"].read_text())
    assert files["sprite.vtt"].read_text() == files_in_one["sprite.vtt"].read_text()
    assert not list(bench.scratch.glob("artifacts/**/pages/*")), "what pages stored is gone"


@pytest.mark.timeout(300)
async def test_words_of_pages_are_those_of_one_piece(bench: Bench, s3: S3Server, lecture: Path) -> None:
    """Exact, in S3, with captions as a track: the longest way there is.

    Pages listen through other windows, in which other words may be misheard; at page borders none is lost or doubled.
    """
    wanted = {"mode": "exact", "transcript": True, "captions": "track"}
    one, split = await both_ways(bench, lecture, {"seconds": 22}, **wanted)
    whole, paged = await work_off(bench, lecture, one, split, seconds=200, ASR_ENGINE="moonshine", **s3_env(s3))
    assert kinds_of(paged) == kinds_of(whole)
    assert len(whole["transcript"].split()) > 200
    assert score(whole["transcript"], paged["transcript"]).percent <= 1
    kinds = [kind for kind, _, _ in await finished(bench, split)]
    assert [kinds.count(kind) for kind in ("sound", "pictures", "speech")] == [1, 6, 6]
    left = s3.client().list_objects_v2(Bucket=s3.bucket, Prefix=f"out/{split}/").get("Contents", [])
    assert not [found for found in left if "/pages/" in found["Key"]]
    assert len(left) == len(paged["artifacts"])


@pytest.mark.timeout(200)
async def test_smart_and_sound_alone_are_heard_in_pages_and_cut_in_one_piece(bench: Bench, long_talk: Path) -> None:
    jobs = {}
    for mode in ("smart", "audio"):
        wanted = {"mode": mode, "start": 3.3, "transcript": True}
        jobs[mode] = await both_ways(bench, long_talk, {"seconds": 12}, **wanted)
    every = [job_id for pair in jobs.values() for job_id in pair]
    await work_off(bench, long_talk, *every, seconds=150, ASR_ENGINE="moonshine")
    for mode, (one, split) in jobs.items():
        whole, paged = await result_of(bench, one), await result_of(bench, split)
        assert {name: paged.get(name) for name in FACTS} == {name: whole.get(name) for name in FACTS}, mode
        assert paged["mode"] == mode
        assert {kind for kind, _, _ in await finished(bench, split)} == {"speech"}
        assert kinds_of(paged) == kinds_of(whole)
        (name,) = [name for name in files_of(paged) if name.startswith("clip")]
        require_same_clip(decode(files_of(whole)[name]), decode(files_of(paged)[name]))
        assert score(whole["transcript"], paged["transcript"]).percent <= 3


@pytest.mark.timeout(120)
async def test_renditions_of_a_smart_cut_are_made_in_pages(bench: Bench, long_talk: Path) -> None:
    one, split = await both_ways(bench, long_talk, {"seconds": 8}, mode="smart", start=3.3, renditions=[60])
    whole, paged = [files_of(result) for result in await work_off(bench, long_talk, one, split)]
    assert {kind for kind, _, _ in await finished(bench, split)} == {"pictures"}
    clip, clip_in_one = decode(paged["clip.mp4"]), decode(whole["clip.mp4"])
    require_same_clip(clip_in_one, clip)
    small, small_in_one = decode(paged["clip-60.mp4"]), decode(whole["clip-60.mp4"])
    assert small.numbers == small_in_one.numbers == clip.numbers
    assert np.array_equal(small.samples, small_in_one.samples)
    # in one piece, a rendition begins at its first sample; in pages it keeps the clip's own time
    assert small.times == clip.times
    assert small.sound_at - small.times[0] == pytest.approx(small_in_one.sound_at - small_in_one.times[0], abs=1e-3)


@pytest.mark.timeout(120)
async def test_smart_cut_that_would_not_be_right_goes_on_in_pages_of_pictures(bench: Bench, tmp_path: Path) -> None:
    """Some sources say so at once (a size to scale to), others only once the cut was tried (no frame to cut at)."""
    source = make_sample(tmp_path / "open.mp4", seconds=30, fps=FPS, size=(160, 90), gop=10_000)
    scaled = await both_ways(bench, source, {"seconds": 7}, mode="smart", max_height=60, start=1.3)
    unfit = await both_ways(bench, source, {"seconds": 7}, mode="smart", start=1.3)
    await work_off(bench, source, *scaled, *unfit)
    for name, (one, split) in {"scaled": scaled, "unfit": unfit}.items():
        whole, paged = await result_of(bench, one), await result_of(bench, split)
        assert {fact: paged.get(fact) for fact in FACTS} == {fact: whole.get(fact) for fact in FACTS}, name
        assert whole["mode"] == "exact"
        (reason,) = await events(bench, split, "fallback:exact")
        (reason_in_one,) = await events(bench, one, "fallback:exact")
        assert reason == reason_in_one
        require_same_clip(decode(files_of(whole)["clip.mp4"]), decode(files_of(paged)["clip.mp4"]))
        assert {kind for kind, _, _ in await finished(bench, split)} == {"pictures", "sound"}


@pytest.mark.timeout(90)
async def test_job_that_waits_for_its_pages_holds_no_slot(bench: Bench, long_talk: Path) -> None:
    """With a single slot it would wait for ever."""
    wanted = {"source": long_talk.as_uri(), "mode": "exact", "transcript": False}
    long_ones = [await bench.submit(**wanted, pages={"seconds": 12, "partitions": 2}) for _ in range(2)]
    short = await bench.submit(**wanted, end=1)
    with bench.worker(MAX_CONCURRENCY="1", LOCAL_SOURCE_ROOTS=str(long_talk.parent)):
        for job_id in (*long_ones, short):
            await bench.wait_for(job_id, JobStatus.DONE, JobStatus.FAILED, seconds=70)
    rows = await bench.room.pool.fetch(
        """SELECT extract(epoch FROM began.at)::float8, extract(epoch FROM min(ended.at))::float8
        FROM worker.job_events began JOIN worker.job_events ended
          ON ended.job_id = began.job_id AND ended.id > began.id AND ended.kind IN ('done', 'split', 'snoozed')
        WHERE began.kind = 'acquired' GROUP BY began.id, began.at"""
    )
    assert len(rows) >= 2 * (2 + 5) + 1
    assert most_at_once([tuple(row) for row in rows]) == 1
    for job_id in long_ones:
        assert (await bench.job(job_id)).attempt_count == 0
        assert (await result_of(bench, job_id))["frames"] == SECONDS * FPS


async def test_short_job_and_a_copy_are_never_split(bench: Bench, long_talk: Path) -> None:
    wanted = {"source": long_talk.as_uri(), "transcript": False}
    jobs = [
        await bench.submit(**wanted, mode="copy", pages={"seconds": 5}),
        await bench.submit(**wanted, mode="exact", end=5, pages={"seconds": 5}),
    ]
    assert not [result for result in await work_off(bench, long_talk, *jobs) if "pages" in result]
    assert await bench.room.pool.fetchval("SELECT count(*) FROM worker.runs") == 0
