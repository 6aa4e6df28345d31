"""Captions keep the rules that readers are used to, whatever the transcript is like."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker.domain.caption_lines import columns
from worker.domain.captions import MAX_SECONDS, MIN_SECONDS, Cue, make_cues, to_text
from worker.domain.transcript import Segment, Transcript, Word


def spoken(text: str, *, start: float = 0.0, word_seconds: float = 0.3, pause: float = 0.0) -> Transcript:
    """`pause` follows each sentence."""
    words, at = list[Word](), start
    for word in text.split():
        words.append(Word(at, at + word_seconds, word))
        at += word_seconds + (pause if word[-1] in ".!?" else 0.0)
    return Transcript("test", "en", (Segment(start, at, text, tuple(words)),))


def lines_of(cues: list[Cue]) -> list[tuple[str, ...]]:
    return [cue.lines for cue in cues]


def test_sentences_and_clauses_stay_together() -> None:
    cues = make_cues(
        spoken(
            "It was the best of times, it was the worst of times. It was the age of wisdom, it was the age of fools."
        )
    )
    assert lines_of(cues) == [
        ("It was the best of times,", "it was the worst of times."),
        ("It was the age of wisdom,", "it was the age of fools."),
    ]


def test_line_breaks_before_a_conjunction_rather_than_in_the_middle() -> None:
    (cue,) = make_cues(spoken("The old man walked down the street and his dog ran after him"))
    assert cue.lines == ("The old man walked down the street", "and his dog ran after him")


def test_line_never_ends_with_an_article() -> None:
    (cue,) = make_cues(spoken("We have been looking everywhere for the bicycle yesterday"))
    assert not any(line.endswith((" the", " a")) for line in cue.lines[:1])


def test_no_word_stands_alone_where_that_can_be_avoided() -> None:
    cues = make_cues(spoken("Somebody finally managed to photograph extraordinarily beautiful butterflies yesterday"))
    assert all(len(line.split()) > 1 for cue in cues for line in cue.lines)


def test_long_pause_ends_a_cue_even_within_a_sentence() -> None:
    words = (Word(0, 0.5, "and"), Word(0.5, 1, "then"), Word(3, 3.5, "nothing"))
    cues = make_cues(Transcript("test", "en", (Segment(0, 3.5, "and then nothing", words),)))
    assert [(cue.start_seconds, cue.lines) for cue in cues] == [(0.0, ("and then",)), (3.0, ("nothing",))]


def test_cue_stays_in_the_silence_until_it_can_be_read() -> None:
    text = "Incomprehensibilities notwithstanding everybody understood."
    (cue,) = make_cues(spoken(text, word_seconds=0.2), until_seconds=20)
    assert cue.end_seconds == pytest.approx(len(text) / 17, abs=0.001)


def test_cue_of_one_short_word_does_not_flash() -> None:
    (cue,) = make_cues(spoken("Go!", word_seconds=0.1), until_seconds=20)
    assert cue.end_seconds == pytest.approx(MIN_SECONDS, abs=0.001)


def test_sounds_end_is_never_passed() -> None:
    (cue,) = make_cues(spoken("Go!", start=4.9, word_seconds=0.1), until_seconds=5)
    assert (cue.start_seconds, cue.end_seconds) == (4.9, 5.0)


def test_cues_that_follow_each_other_leave_two_frames() -> None:
    first, second = make_cues(spoken("This is said first of all. " * 2, word_seconds=0.5, pause=0.3))
    assert round(second.start_seconds - first.end_seconds, 3) == 0.083


def test_punctuation_that_words_lack_is_taken_from_the_text() -> None:
    words = tuple(Word(at, at + 1.0, text) for at, text in enumerate(["He", "said", "stop", "it", "now"]))
    transcript = Transcript("test", "en", (Segment(0, 5, 'He said: "Stop it" (now)', words),))
    # the words do not agree with the text, which has a capital
    assert [line for cue in make_cues(transcript) for line in cue.lines] == ["He said stop it now"]
    transcript = Transcript("test", "en", (Segment(0, 5, 'He said: "stop it" (now)!', words),))
    assert [line for cue in make_cues(transcript) for line in cue.lines] == ['He said: "stop it" (now)!']


def test_segment_without_words_is_spread_over_its_time() -> None:
    text = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    cues = make_cues(Transcript("test", "en", (Segment(10, 20, text),)))
    assert " ".join(line for cue in cues for line in cue.lines) == text
    assert cues[0].start_seconds == 10
    assert cues[-1].end_seconds == 20
    assert len(cues) > 1


def test_chinese_lines_hold_sixteen_characters_and_begin_with_no_punctuation() -> None:
    text = "今天天气很好我们一起去公园里面散步、然后回家吃饭。" * 3
    words = tuple(Word(at * 0.2, at * 0.2 + 0.2, char) for at, char in enumerate(text))
    cues = make_cues(Transcript("test", "zh", (Segment(0, 20, text, words),)))
    lines = [line for cue in cues for line in cue.lines]
    assert "".join(lines) == text
    assert all(len(line) <= 16 and line[0] not in "、。" for line in lines)


def test_word_longer_than_a_line_is_broken() -> None:
    word = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 2
    cues = make_cues(spoken(f"Die {word} ruft", word_seconds=2))
    assert "".join(line for cue in cues for line in cue.lines).replace(" ", "") == f"Die{word}ruft"
    assert all(len(line) <= 42 for cue in cues for line in cue.lines)


def test_emoji_of_several_characters_stay_whole() -> None:
    family = "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}"
    cues = make_cues(spoken(family * 40, word_seconds=9))
    assert all(line.replace(family, "") == "" for cue in cues for line in cue.lines)


def test_text_has_a_paragraph_for_each_long_pause() -> None:
    first, second = spoken("Hello there. I am here."), spoken("Now this.", start=9)
    assert to_text(Transcript("test", "en", first.segments + second.segments)) == (
        "Hello there. I am here.\n\nNow this.\n"
    )


def test_nothing_said_is_nothing_shown() -> None:
    empty = Transcript("test", "en", (Segment(0, 5, "  \n "), Segment(5, 6, "", (Word(5, 6, " "),))))
    assert (make_cues(empty, until_seconds=9), to_text(empty)) == ([], "\n")


TEXTS = st.text(
    st.one_of(
        st.sampled_from("aeinrst.,!?-<>&{}\\\"'\n\r\u2028 "),
        st.sampled_from("今天気。、「」ーっกขשלוםمرحبا\u0301\u093e\u200d\u200b\N{GRINNING FACE}\U0001f1e9\ufe0f"),
        st.characters(),
    ),
    max_size=60,
)
SECONDS = st.floats(-1, 120)


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    """Times of any kind, as engines tell them on a bad day."""
    segments = []
    for _ in range(draw(st.integers(0, 4))):
        words = [Word(draw(SECONDS), draw(SECONDS), draw(TEXTS)) for _ in range(draw(st.integers(0, 12)))]
        if draw(st.booleans()):
            words.sort(key=lambda word: word.start_seconds)
        text = draw(st.sampled_from([" ", ""])).join(word.text for word in words) or draw(TEXTS)
        segments.append(Segment(draw(SECONDS), draw(SECONDS), text, tuple(words)))
    return Transcript("test", "xx", tuple(segments))


def bare(text: str) -> str:
    """Without what captions may change: spaces and what cannot be shown."""
    return "".join(
        char for char in text if not char.isspace() and unicodedata.category(char) not in {"Cc", "Cs", "Zl", "Zp"}
    )


@settings(max_examples=300, deadline=None)
@given(transcripts(), st.floats(1, 200), st.sampled_from([24.0, 42.0]))
def test_cues_keep_every_rule(transcript: Transcript, until: float, most: float) -> None:
    cues = make_cues(transcript, until_seconds=until, line_columns=most)
    for cue in cues:
        assert 0 <= cue.start_seconds < cue.end_seconds <= until
        assert cue.end_seconds - cue.start_seconds <= MAX_SECONDS + 1e-6
        assert 1 <= len(cue.lines) <= 2
        assert all(line == line.strip() and line and len(line.splitlines()) == 1 for line in cue.lines)
        assert all(columns(line) <= most + 1e-6 for line in cue.lines)
    assert all(left.end_seconds <= right.start_seconds for left, right in pairwise(cues))
    told = "".join(bare(word.text) for segment in transcript.segments for word in segment.words or ())
    if all(
        segment.words and "".join(word.text for word in segment.words) == segment.text
        for segment in transcript.segments
    ):
        assert bare("".join(line for cue in cues for line in cue.lines)) == told


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text("abcdefghij.,", min_size=1, max_size=14), min_size=1, max_size=60), st.floats(0.05, 1.5))
def test_each_word_is_shown_once_and_in_order(words: list[str], word_seconds: float) -> None:
    cues = make_cues(spoken(" ".join(words), word_seconds=word_seconds), until_seconds=200)
    assert " ".join(line for cue in cues for line in cue.lines).split() == words
    # whoever speaks slowly enough to be read is read at that pace
    if word_seconds > 1:
        assert all(
            sum(map(len, cue.lines)) / (cue.end_seconds - cue.start_seconds) <= 20
            or cue.end_seconds - cue.start_seconds >= 6.9
            for cue in cues
        )
