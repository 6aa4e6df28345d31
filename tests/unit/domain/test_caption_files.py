"""Caption files as parsers of others read them."""

import html
from io import StringIO

import pytest
import srt
import webvtt

from worker.domain.captions import WORD_JOINER, Cue, to_srt, to_text, to_vtt
from worker.domain.transcript import Transcript

CUES = [
    Cue(0.0, 1.25, ("Hello,", "world & all")),
    Cue(3599.999, 3600.5, ("1 < 2 --> 3 > 2",)),
    Cue(360_000.0, 360_001.0, ("<font color=red>no</font> {\\an8} \\N", "שלום \N{GRINNING FACE} 今天")),
]


def test_srt_is_read_back() -> None:
    found = list(srt.parse(to_srt(CUES)))
    assert [(cue.index, cue.start.total_seconds(), cue.end.total_seconds()) for cue in found] == [
        (number, cue.start_seconds, cue.end_seconds) for number, cue in enumerate(CUES, start=1)
    ]
    assert [tuple(cue.content.replace(WORD_JOINER, "").split("\n")) for cue in found] == [cue.lines for cue in CUES]


@pytest.mark.parametrize("markup", ["<font", "</font", "{\\an8", "-->"])
def test_srt_holds_nothing_that_players_take_for_markup(markup: str) -> None:
    texts = "".join(cue.content for cue in srt.parse(to_srt(CUES)))
    assert markup not in texts


def test_vtt_is_read_back() -> None:
    found = list(webvtt.from_buffer(StringIO(to_vtt(CUES, language="en"))))
    assert [(cue.start_in_seconds, cue.end_in_seconds) for cue in found] == [
        (int(cue.start_seconds), int(cue.end_seconds)) for cue in CUES
    ]
    assert [tuple(html.unescape(cue.raw_text).split("\n")) for cue in found] == [cue.lines for cue in CUES]


def test_vtt_escapes_what_would_be_markup() -> None:
    text = to_vtt(CUES, language="en")
    assert text.startswith("WEBVTT\n\nNOTE language: en\n\n00:00:00.000 --> 00:00:01.250\nHello,\nworld &amp; all\n\n")
    assert text.count("-->") == len(CUES)
    assert "&lt;font color=red&gt;no&lt;/font&gt;" in text


def test_nothing_said_makes_files_that_are_valid_and_empty() -> None:
    # a file of no bytes would count as cut off
    assert list(srt.parse(to_srt([]))) == []
    assert to_srt([]) == to_text(Transcript("test", "en")) == "\n"
    assert to_vtt([], language="en") == "WEBVTT\n"
    assert len(webvtt.from_buffer(StringIO(to_vtt([])))) == 0
