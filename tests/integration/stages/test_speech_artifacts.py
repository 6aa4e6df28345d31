"""What speech leaves in storage: transcript, caption files and the captioned clip, each made once for a job."""

import json
import subprocess
import wave
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from io import StringIO
from pathlib import Path
from typing import Any

import av
import pytest
import srt
import webvtt

from tests.integration.stages.attempts import Attempts
from worker.asr import AsrOptions, Recognizer, open_recognizer
from worker.errors import AsrUnavailable, OutputCorrupt
from worker.media.ffmpeg import find_ffmpeg
from worker.media.sample import make_sample
from worker.stages.base import Work

ALL = ("resolve", "clip", "upload", "asr", "finalize")
TEXTS = ("transcript.json", "transcript.srt", "transcript.vtt", "transcript.txt")
#: the first sentence of the reading
SPOKEN: dict[str, Any] = {"start": 0.5, "end": 5.5, "transcript": True, "poster": False}


def open_moonshine() -> Recognizer:
    recognizer = open_recognizer(AsrOptions("moonshine", timeout_seconds=30))
    assert recognizer is not None
    return recognizer


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sample(tmp_path_factory.mktemp("talk") / "talk.mp4", seconds=6, size=(320, 180), gop=15)


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def recognizer(stack: AsyncExitStack) -> Recognizer:
    recognizer = open_moonshine()
    stack.push_async_callback(recognizer.close)
    return recognizer


@pytest.fixture
def attempts(talk: Path, tmp_path: Path, stack: AsyncExitStack, recognizer: Recognizer) -> Attempts:
    return Attempts(talk, tmp_path, stack, recognizer=recognizer)


def names_of(work: Work) -> list[str]:
    return [Path(told["key"]).name for told in work.result["artifacts"]]


def frame_times(path: Path) -> list[float]:
    with av.open(str(path)) as container:
        return [round(float(frame.time or 0), 3) for frame in container.decode(video=0)]


def pixels_changed(one: Path, other: Path) -> int:
    """The most that any frame differs in."""
    with av.open(str(one)) as left, av.open(str(other)) as right:
        pairs = zip(left.decode(video=0), right.decode(video=0), strict=True)
        return max(
            int((abs(a.to_ndarray(format="gray").astype(int) - b.to_ndarray(format="gray")) > 80).sum())
            for a, b in pairs
        )


async def test_transcript_lies_beside_the_clip_in_four_forms(attempts: Attempts) -> None:
    work = await attempts.begin(*ALL, **SPOKEN)
    assert names_of(work) == ["clip.mp4", *TEXTS]
    kinds = {told["kind"]: told["content_type"] for told in work.result["artifacts"]}
    assert kinds["srt"] == "application/x-subrip"
    assert kinds["vtt"] == "text/vtt"
    assert "best of times" in work.result["transcript"]
    assert (work.result["language"], work.result["transcript_error"]) == ("en", None)

    told = json.loads(attempts.artifact("transcript.json").read_text())
    assert told["text"] == work.result["transcript"]
    assert all(word["estimated"] for segment in told["segments"] for word in segment["words"])
    words = told["text"].split()
    cues = list(srt.parse(attempts.artifact("transcript.srt").read_text()))
    assert " ".join(cue.content for cue in cues).split() == words
    captions = webvtt.from_buffer(StringIO(attempts.artifact("transcript.vtt").read_text()))
    assert " ".join(cue.text for cue in captions).split() == words
    assert attempts.artifact("transcript.txt").read_text().split() == words
    assert all(0 <= cue.start.total_seconds() < cue.end.total_seconds() <= 5.0 for cue in cues)


@pytest.mark.parametrize("captions", ["burn", "track"])
async def test_later_attempt_finds_everything_and_listens_to_nobody(
    attempts: Attempts, talk: Path, tmp_path: Path, stack: AsyncExitStack, captions: str
) -> None:
    wishes = {**SPOKEN, "captions": captions, "renditions": [90]}
    first = await attempts.begin(*ALL, **wishes)
    names = names_of(first)
    assert names == ["clip.mp4", "clip-90.mp4", *TEXTS, "clip-captioned.mp4"]
    stored = {name: attempts.artifact(name).stat().st_mtime_ns for name in names}
    # renditions and the clip itself stay without captions
    assert frame_times(attempts.artifact("clip-captioned.mp4")) == frame_times(attempts.stored)
    changed = pixels_changed(attempts.stored, attempts.artifact("clip-captioned.mp4"))
    assert changed > 100 if captions == "burn" else changed == 0

    await attempts.recognizer.close()  # whoever asks it now is told so
    attempts.timeline.clear()
    second = await attempts.begin(*ALL, **wishes)
    # clip, rendition, transcript and the captioned clip were fetched; the texts are made of the transcript
    assert attempts.timeline.kinds == ["skipped:artifact-exists"] * 4
    assert second.result["artifacts"] == first.result["artifacts"]
    assert second.result["transcript"] == first.result["transcript"]
    assert {name: attempts.artifact(name).stat().st_mtime_ns for name in names} == stored


async def test_later_attempt_makes_only_what_is_missing_or_damaged(attempts: Attempts) -> None:
    wishes = {**SPOKEN, "captions": "track"}
    first = await attempts.begin(*ALL, **wishes)
    await attempts.recognizer.close()
    attempts.artifact("transcript.srt").unlink()
    damaged = attempts.artifact("clip-captioned.mp4")
    damaged.write_bytes(bytes(damaged.stat().st_size))
    attempts.timeline.clear()
    second = await attempts.begin(*ALL, **wishes)
    assert sorted(attempts.timeline.kinds) == ["redone:artifact-damaged", *["skipped:artifact-exists"] * 2]
    assert [told["sha256"] for told in second.result["artifacts"]] == [
        told["sha256"] for told in first.result["artifacts"]
    ]


async def test_transcript_that_is_lost_is_made_again_of_the_stored_clip(attempts: Attempts) -> None:
    first = await attempts.begin(*ALL, **SPOKEN)
    attempts.artifact("transcript.json").unlink()
    attempts.timeline.clear()
    second = await attempts.begin(*ALL, **SPOKEN)
    assert attempts.timeline.kinds == ["skipped:artifact-exists"]
    assert second.result["transcript"].lower().split()[:6] == first.result["transcript"].lower().split()[:6]


async def test_late_attempt_tells_the_transcript_that_is_stored(attempts: Attempts) -> None:
    """Two attempts may hear differently; text, captions and result are those of the one that stored first."""
    zombie = await attempts.begin("resolve", "clip", **SPOKEN)
    winner = await attempts.begin(*ALL, **SPOKEN)
    # the later one hears only the first second
    assert zombie.speech is not None
    with wave.open(str(zombie.speech), "rb") as whole:
        parameters, content = whole.getparams(), whole.readframes(16_000)
    with wave.open(str(zombie.speech), "wb") as part:
        part.setparams(parameters)
        part.writeframes(content)
    head = attempts.storage.head

    async def blind(key: str) -> Any:
        attempts.storage.head = head  # type: ignore[method-assign] - it looked before the other one stored it
        return None

    attempts.storage.head = blind  # type: ignore[method-assign] - as above
    await attempts.go_on(zombie, "asr")
    assert zombie.transcript == winner.transcript
    assert {kind: zombie.artifacts[kind] for kind in ("transcript", "srt", "vtt", "text")} == {
        kind: winner.artifacts[kind] for kind in ("transcript", "srt", "vtt", "text")
    }


async def test_sound_alone_has_caption_files_but_nothing_to_show_them_on(attempts: Attempts) -> None:
    work = await attempts.begin(*ALL, **SPOKEN, mode="audio", captions="burn")
    assert names_of(work) == ["clip.m4a", *TEXTS]
    assert attempts.timeline.kinds == ["skipped:no-picture"]
    assert "best of times" in work.result["transcript"]


async def test_clip_without_sound_gets_no_transcript(
    talk: Path, tmp_path: Path, stack: AsyncExitStack, recognizer: Recognizer
) -> None:
    mute = tmp_path / "mute.mp4"
    subprocess.run([find_ffmpeg(None), "-v", "error", "-i", talk, "-c", "copy", "-an", mute], check=True, timeout=20)
    attempts = Attempts(mute, tmp_path, stack, recognizer=recognizer)
    work = await attempts.begin(*ALL, **SPOKEN, captions="burn")
    assert names_of(work) == ["clip.mp4"]
    assert attempts.timeline.kinds == ["skipped:no-audio"]
    assert (work.result["transcript"], work.result["transcript_error"]) == (None, None)
    assert recognizer.pid is None


async def test_clip_in_which_nobody_speaks_has_empty_captions(
    tmp_path: Path, stack: AsyncExitStack, recognizer: Recognizer
) -> None:
    chimes = make_sample(tmp_path / "chimes.mp4", seconds=3, size=(160, 90), gop=15, speech=False)
    attempts = Attempts(chimes, tmp_path, stack, recognizer=recognizer)
    work = await attempts.begin(*ALL, transcript=True, captions="track", poster=False)
    assert names_of(work) == ["clip.mp4", *TEXTS]
    assert attempts.timeline.kinds == ["skipped:no-speech"]
    assert work.result["transcript"] == ""


async def test_worker_that_does_not_listen_says_so(talk: Path, tmp_path: Path, stack: AsyncExitStack) -> None:
    attempts = Attempts(talk, tmp_path, stack)
    work = await attempts.begin(*ALL, **SPOKEN, captions="burn")
    assert names_of(work) == ["clip.mp4"]
    assert attempts.timeline.kinds == ["skipped:no-engine"]


@pytest.mark.parametrize(
    ("harm", "error"), [("closed", AsrUnavailable), ("broken sound", OutputCorrupt)], ids=["engine", "sound"]
)
async def test_speech_that_fails_costs_the_transcript_only_if_that_was_allowed(
    attempts: Attempts, harm: str, error: type[Exception]
) -> None:
    for wish in ("required", "best-effort"):
        work = await attempts.begin("resolve", "clip", "upload", **SPOKEN | {"transcript": wish}, captions="burn")
        if harm == "closed":
            await attempts.recognizer.close()
        else:
            work.speech = work.scratch / "broken.wav"
            work.speech.write_bytes(b"<html>")
        if wish == "required":
            with pytest.raises(error):
                await attempts.go_on(work, "asr")
        else:
            await attempts.go_on(work, "asr", "finalize")
            assert names_of(work) == ["clip.mp4"]
            assert work.result["transcript_error"]["code"] == error.code  # type: ignore[attr-defined] - ours have one
            assert attempts.timeline.kinds[-1] == "skipped:no-transcript"
