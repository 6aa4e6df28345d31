"""The speech benchmark's parts on a few seconds of sound: what they measure is tested, never how fast it is."""

from dataclasses import replace

import pytest

from bench.asr.__main__ import BARE, OURS, Hearing, Result, compare, listen, listen_bare
from bench.asr.corpus import BECKETT, Recording, read_sound, recordings_folder, write_wav
from bench.asr.synthesis import SAMPLE_RATE, speak
from bench.asr.words import Score, score, words_of

SENTENCE = "The quick brown fox jumps over the lazy dog."


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[Recording]:
    folder = tmp_path_factory.mktemp("corpus")
    human, spoken = read_sound(recordings_folder() / "beckett.wav"), speak(SENTENCE)
    return [
        Recording("beckett", True, BECKETT, write_wav(folder / "human.wav", human), human.size / SAMPLE_RATE),
        Recording("sentence", False, SENTENCE, write_wav(folder / "spoken.wav", spoken), spoken.size / SAMPLE_RATE),
    ]


@pytest.mark.parametrize(
    ("heard", "errors"),
    [
        ("ever tried - EVER FAILED!", 0),
        ("ever tried ever", 1),
        ("ever tried ever ever failed", 1),
        ("never tried ever failed", 1),
        ("", 4),
        ("one two three four five", 5),
    ],
)
def test_wrong_missing_and_surplus_words_count_alike(heard: str, errors: int) -> None:
    assert score("Ever tried. Ever failed.", heard) == Score(errors, 4)


def test_words_are_compared_as_they_are_heard() -> None:
    assert words_of("It's 9 o'clock: well-known!") == ["it's", "9", "o'clock", "well", "known"]


def test_synthetic_speech_is_as_long_as_people_take_and_other_voices_sound_otherwise() -> None:
    spoken = speak(SENTENCE)
    assert 1.5 < spoken.size / SAMPLE_RATE < 5
    assert abs(spoken).max() > 1000
    assert spoken.tolist() != speak(SENTENCE, voice="en").tolist()
    with pytest.raises(ValueError, match="no voice 'nobody'"):
        speak(SENTENCE, voice="nobody")


async def test_both_hear_the_same_recordings_and_are_set_side_by_side(corpus: list[Recording]) -> None:
    results = [await listen(corpus), *[await listen_bare(name, threshold, corpus) for name, threshold in BARE.items()]]
    for result in results:
        assert "tried" in result.hearings[0].text.lower()
        assert "fox" in result.hearings[1].text.lower()
        assert all(heard.cpu_seconds > 0 and heard.wall_seconds > 0 for heard in result.hearings)
        assert result.peak_bytes > 100 * 2**20
    human, synthetic = compare(corpus, results)
    for line, name in ((human, "beckett"), (synthetic, "sentence")):
        assert [row[""] for row in line.rows] == [OURS, *BARE]
        assert all(row[f"{name}, %"] == row["all, %"] for row in line.rows)
        assert len(line.targets) == len(BARE)


def test_more_wrong_words_than_the_bare_engine_is_a_missed_target(corpus: list[Recording]) -> None:
    perfect = [Hearing(recording.text, 1.0, 1.0) for recording in corpus]
    deaf = [replace(heard, text="") for heard in perfect]
    results = [Result(OURS, deaf, 1), *[Result(name, perfect, 1) for name in BARE]]
    for line in compare(corpus, results):
        assert [target.is_met for target in line.targets] == [False] * len(BARE)
        assert line.rows[0]["all, %"] == 100
