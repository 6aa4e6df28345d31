"""Which engine the worker gets for which name."""

import subprocess
import sys
from pathlib import Path

import pytest

from worker.asr import ENGINES, open_recognizer
from worker.errors import ConfigError, InvalidRequest


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_opens_under_its_own_name(engine: str) -> None:
    assert open_recognizer(engine).name == engine


def test_unknown_engine_names_the_setting_and_the_choices() -> None:
    with pytest.raises(ConfigError, match=r"ASR_ENGINE='whisprr'.*moonshine, none"):
        open_recognizer("whisprr")


def test_missing_package_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(ConfigError, match=r"moonshine-voice.*ASR_ENGINE=none"):
        open_recognizer("moonshine")


async def test_none_hears_nothing_in_any_language(tmp_path: Path) -> None:
    recognizer = open_recognizer("none")

    transcript = await recognizer.transcribe(tmp_path / "absent.wav", language="de")
    await recognizer.close()

    assert (transcript.engine, transcript.language, transcript.segments) == ("none", "de", ())


async def test_moonshine_refuses_other_languages_before_it_starts(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"'de'.*English"):
        await open_recognizer("moonshine").transcribe(tmp_path / "absent.wav", language="de")


def test_importing_the_room_loads_neither_engine_nor_numpy() -> None:
    code = "import sys, worker.asr; print({'numpy', 'moonshine_voice'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "set()"
