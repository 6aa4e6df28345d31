"""A talk of twenty minutes: recordings joined at known times, so that every word and every pause has a truth."""

import difflib
import random
from dataclasses import dataclass
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import srt
import webvtt

from bench.asr.corpus import BECKETT, TWO_CITIES, read_sound, write_wav
from bench.asr.synthesis import SAMPLE_RATE
from bench.asr.words import score, words_of
from tests.integration.asr.conftest import moonshine
from worker.asr import Recognizer
from worker.asr.base import WindowPolicy
from worker.asr.voice import VoiceDetector, find_speech
from worker.asr.wav import open_wav
from worker.asr.windows import plan_windows
from worker.domain.caption_lines import LINE_COLUMNS
from worker.domain.captions import MAX_SECONDS, READING_COLUMNS, make_cues, to_srt, to_vtt
from worker.domain.transcript import Segment, Transcript, Word

TALK_SECONDS = 20 * 60
#: what is read, and when the voice begins and ends: read off the sound's envelope, past clicks and rustling paper
READ = {"two_cities.wav": (TWO_CITIES, 1.2, 41.65), "beckett.wav": (BECKETT, 0.3, 8.85)}


@dataclass(frozen=True, slots=True)
class Talk:
    wav: Path
    seconds: float
    #: what is read, and when its sound begins and ends
    readings: list[tuple[str, float, float]]


def make_talk(recordings: Path, path: Path, *, seconds: float) -> Talk:
    choice = random.Random(6)
    known = [(*facts, read_sound(recordings / name)) for name, facts in READ.items()]
    pieces, readings, at = [], [], 0.0
    while at < seconds:
        text, first, last, samples = known[len(readings) % len(known)]
        pause = np.zeros(round(choice.uniform(0.2, 4.0) * SAMPLE_RATE), dtype=np.int16)
        at += pause.size / SAMPLE_RATE
        readings.append((text, at + first, at + last))
        pieces += [pause, samples]
        at += samples.size / SAMPLE_RATE
    return Talk(write_wav(path, np.concatenate(pieces)), at, readings)


def of(reading: tuple[str, float, float], segments: tuple[Segment, ...]) -> list[Segment]:
    """The segments in which it was heard."""
    _text, start, end = reading
    return [segment for segment in segments if start < (segment.start_seconds + segment.end_seconds) / 2 < end]


@pytest.mark.timeout(900)
async def test_twenty_minutes_lose_and_double_no_word_and_keep_the_time(
    recognizer: Recognizer, recordings: Path, tmp_path: Path
) -> None:
    talk = make_talk(recordings, tmp_path / "talk.wav", seconds=TALK_SECONDS)
    told: list[float] = []
    transcript = await recognizer.transcribe(talk.wav, language=None, on_progress=told.append)

    assert told == sorted(told)
    assert told[-1] == 1.0
    check_words_and_times(talk, transcript)
    check_captions(talk, transcript)


@pytest.mark.timeout(300)
async def test_no_word_is_lost_or_doubled_where_windows_overlap(recordings: Path, tmp_path: Path) -> None:
    """The engine's own windows all end in pauses of this talk; shorter ones must cut through what is said."""
    talk = make_talk(recordings, tmp_path / "talk.wav", seconds=150)
    recognizer = moonshine()
    recognizer.engine.policy = WindowPolicy(6, 9)
    with open_wav(talk.wav) as wav:
        speech, levels = find_speech(VoiceDetector().probabilities(wav)), wav.levels()
    windows = plan_windows(speech, levels, recognizer.engine.policy, duration_seconds=talk.seconds)
    assert sum(one.end_seconds > two.start_seconds for one, two in pairwise(windows)) >= 5
    try:
        transcript = await recognizer.transcribe(talk.wav, language=None)
    finally:
        await recognizer.close()
    check_words_and_times(talk, transcript)


def check_words_and_times(talk: Talk, transcript: Transcript) -> None:
    segments = transcript.segments
    assert all(one.end_seconds <= two.start_seconds for one, two in pairwise(segments))
    assert sum(len(of(reading, segments)) for reading in talk.readings) == len(segments)
    for reading in talk.readings:
        text, start, end = reading
        mine = of(reading, segments)
        assert mine[0].start_seconds == pytest.approx(start, abs=0.3)
        assert mine[-1].end_seconds == pytest.approx(end, abs=0.3)
        heard = " ".join(segment.text for segment in mine)
        assert score(text, heard).percent < 10
        assert lost_or_doubled_at_borders(text, mine) == []


def check_captions(talk: Talk, transcript: Transcript) -> None:
    """As parsers of others read them: every word once, in order, in two lines, one caption at a time."""
    cues = make_cues(transcript, until_seconds=talk.seconds)
    shown = list(srt.parse(to_srt(cues)))
    captions = webvtt.from_buffer(StringIO(to_vtt(cues, language="en")))
    assert [cue.content for cue in shown] == [caption.text for caption in captions]
    assert " ".join(cue.content for cue in shown).split() == transcript.text.split()
    assert all(one.end < two.start for one, two in pairwise(shown))
    assert shown[-1].end.total_seconds() <= talk.seconds
    for cue in shown:
        lines = cue.content.split("\n")
        assert len(lines) <= 2
        assert max(map(len, lines)) <= LINE_COLUMNS
        assert 0 < (cue.end - cue.start).total_seconds() <= MAX_SECONDS
    for cue, following in pairwise(shown):
        # Who speaks too fast to be read leaves no time: the caption stays until the next one comes.
        if len(cue.content) / (cue.end - cue.start).total_seconds() > READING_COLUMNS + 0.1:
            assert (following.start - cue.end).total_seconds() <= 0.1


def lost_or_doubled_at_borders(text: str, segments: list[Segment]) -> list[str]:
    """What is missing or too many within three words of a window's border. A word that was misheard is neither."""
    heard, borders = list[str](), list[int]()
    for segment in segments:
        borders.append(len(heard))
        heard += words_of(segment.text)
    borders.append(len(heard))
    said = words_of(text)
    found = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, said, heard, autojunk=False).get_opcodes():
        surplus = (d - c) - (b - a)
        if kind != "equal" and surplus != 0 and any(c - 3 <= border <= d + 3 for border in borders):
            found.append(f"{kind}: {said[a:b]} became {heard[c:d]}")
    return found


async def test_windows_that_cut_through_speech_are_stitched(recordings: Path) -> None:
    """The last nine seconds of the reading have no pause: short windows must overlap there."""
    recognizer = moonshine()
    recognizer.engine.policy = WindowPolicy(3, 5)
    try:
        transcript = await recognizer.transcribe(recordings / "two_cities.wav", language=None)
    finally:
        await recognizer.close()
    said, heard = _from(words_of(TWO_CITIES), "authorities"), _from(words_of(transcript.text), "authorities")
    # a word may be misheard, none is lost or doubled
    assert len(heard) == len(said)
    assert sum(one == other for one, other in zip(said, heard, strict=True)) >= len(said) - 2
    words: list[Word] = transcript.words
    assert all(one.end_seconds <= two.start_seconds + 1e-6 for one, two in pairwise(words))


def _from(words: list[str], word: str) -> list[str]:
    return words[words.index(word) :]
