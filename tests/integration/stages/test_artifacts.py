"""Artifacts of earlier attempts: intact ones are used, damaged ones made again, a zombie's are never the result."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.integration.stages.attempts import Attempts
from worker.domain.media import ArtifactKind
from worker.errors import DiskFull, RangeOutsideSource, StorageUploadFailed
from worker.media.sample import make_sample


@pytest.fixture
async def attempts(tmp_path: Path) -> AsyncIterator[Attempts]:
    make_sample(tmp_path / "talk.mp4", seconds=2, size=(320, 180), gop=15)
    async with AsyncExitStack() as stack:
        yield Attempts(tmp_path / "talk.mp4", tmp_path, stack)


ALL = ("resolve", "clip", "upload", "finalize")


async def test_intact_clip_of_an_earlier_attempt_is_not_cut_again(attempts: Attempts) -> None:
    first = await attempts.begin(*ALL)
    second = await attempts.begin(*ALL)
    # the clip and its poster
    assert attempts.timeline.kinds == ["skipped:artifact-exists"] * 2
    assert second.result["artifacts"] == first.result["artifacts"]


@pytest.mark.parametrize("left", [b"", b"cut off"], ids=["empty", "cut off"])
async def test_truncated_clip_is_cut_again(attempts: Attempts, left: bytes) -> None:
    first = await attempts.begin(*ALL)
    intact = attempts.stored.read_bytes()
    attempts.stored.write_bytes(left)
    second = await attempts.begin(*ALL)
    assert attempts.timeline.kinds == []
    assert attempts.stored.read_bytes() == intact
    assert second.result["artifacts"] == first.result["artifacts"]


async def test_clip_with_other_bytes_of_the_same_length_is_cut_again(attempts: Attempts) -> None:
    await attempts.begin(*ALL)
    intact = attempts.stored.read_bytes()
    attempts.stored.write_bytes(bytes(len(intact)))
    await attempts.begin(*ALL)
    assert attempts.timeline.kinds == ["redone:artifact-damaged", "skipped:artifact-exists"]
    assert attempts.stored.read_bytes() == intact


async def test_late_upload_of_a_worker_that_lost_its_lease_changes_nothing(attempts: Attempts) -> None:
    zombie = await attempts.begin("resolve", "clip")
    zombie.clip.path.write_bytes(b"whatever the zombie made")
    winner = await attempts.begin(*ALL)
    published = attempts.stored.read_bytes()
    await attempts.go_on(zombie, "upload")
    assert attempts.stored.read_bytes() == published
    assert zombie.artifacts[ArtifactKind.CLIP] == winner.artifacts[ArtifactKind.CLIP]


async def test_artifact_that_vanished_before_the_end_is_no_result(attempts: Attempts) -> None:
    work = await attempts.begin("resolve", "clip", "upload")
    attempts.stored.unlink()
    with pytest.raises(StorageUploadFailed, match="not in storage any more"):
        await attempts.go_on(work, "finalize")


EVERYTHING: dict[str, Any] = {"renditions": [90, 720], "sprite": True, "waveform": True, "poster": 0.5}
NAMES = {"clip.mp4", "clip-90.mp4", "poster.jpg", "sprite.jpg", "sprite.vtt", "waveform.json"}


async def test_extras_lie_beside_the_clip_under_names_of_their_own(attempts: Attempts) -> None:
    work = await attempts.begin(*ALL, **EVERYTHING)
    artifacts = {Path(told["key"]).name: told for told in work.result["artifacts"]}
    assert artifacts.keys() == NAMES
    assert (artifacts["clip-90.mp4"]["kind"], artifacts["clip-90.mp4"]["height"]) == ("rendition", 90)
    assert artifacts["sprite.vtt"]["content_type"] == "text/vtt"
    assert all(attempts.artifact(name).stat().st_size == told["bytes"] for name, told in artifacts.items())
    # never scaled up, and it is said
    assert (attempts.timeline.kinds, attempts.timeline.data[0]["heights"]) == (["skipped:not-smaller"], [720])
    cue = attempts.artifact("sprite.vtt").read_text().splitlines()[2:4]
    assert cue == ["00:00:00.000 --> 00:00:01.000", "sprite.jpg#xywh=0,0,160,90"]


async def test_later_attempt_makes_only_what_is_missing_or_damaged(attempts: Attempts) -> None:
    first = await attempts.begin(*ALL, **EVERYTHING)
    kept = {name: attempts.artifact(name).stat().st_mtime_ns for name in NAMES}
    attempts.artifact("sprite.jpg").unlink()
    damaged = attempts.artifact("clip-90.mp4")
    damaged.write_bytes(bytes(damaged.stat().st_size))
    attempts.timeline.kinds.clear()
    second = await attempts.begin(*ALL, **EVERYTHING)
    assert sorted(attempts.timeline.kinds) == [
        "redone:artifact-damaged",
        *["skipped:artifact-exists"] * 4,
        "skipped:not-smaller",
    ]
    assert [told["sha256"] for told in second.result["artifacts"]] == [
        told["sha256"] for told in first.result["artifacts"]
    ]
    changed = {name for name in NAMES if attempts.artifact(name).stat().st_mtime_ns != kept[name]}
    assert changed == {"sprite.jpg", "clip-90.mp4"}
    # known from the stored clip, so it was not measured again
    assert second.result["loudness"] == first.result["loudness"]
    assert not (second.scratch / "loudness.txt").exists()


async def test_result_tells_how_far_off_a_copy_is(attempts: Attempts) -> None:
    work = await attempts.begin(*ALL, mode="copy", start=0.7)
    assert (work.result["start"], work.result["start_off_ms"]) == (0.5, -200)
    assert 0 <= work.result["end_off_ms"] <= 100
    assert (work.result["width"], work.result["height"], work.result["frames_reencoded"]) == (320, 180, 0)


async def test_loudness_is_told_though_nobody_asked(attempts: Attempts) -> None:
    told = (await attempts.begin(*ALL)).result["loudness"]
    assert -60 < told["integrated_lufs"] < -5
    assert told.keys() == {"integrated_lufs", "range_lu", "true_peak_dbtp"}


async def test_disk_is_asked_for_before_anything_is_cut(attempts: Attempts) -> None:
    def full(size_bytes: int) -> None:
        raise DiskFull(f"no room for {size_bytes} bytes")

    work = await attempts.begin()
    work.reserve = full
    with pytest.raises(DiskFull, match=r"no room for \d{7,} bytes"):
        await attempts.go_on(work, "resolve")


async def test_poster_behind_the_clips_end_is_refused_before_any_work(attempts: Attempts) -> None:
    with pytest.raises(RangeOutsideSource, match="poster"):
        await attempts.begin("resolve", poster=1.5)
