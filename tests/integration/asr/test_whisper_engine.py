"""The real faster-whisper on a model with random weights: everything but the meaning of its words."""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest

from tests.recordings import write_16k
from tests.whisper_model import write_whisper_model
from worker.asr.base import Window
from worker.asr.whisper import WhisperEngine
from worker.errors import AsrRefused, AsrUnavailable, ConfigError, OutputCorrupt

WINDOW = Window(start_seconds=2.0, end_seconds=5.5)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_whisper_model(tmp_path_factory.mktemp("models") / "random")


@pytest.fixture(scope="module")
def beckett(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_16k("beckett", tmp_path_factory.mktemp("sound") / "beckett.wav")


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))


@pytest.fixture
async def engine_of() -> AsyncIterator[Callable[..., WhisperEngine]]:
    opened: list[WhisperEngine] = []

    def open_engine(model: object, **options: str) -> WhisperEngine:
        opened.append(WhisperEngine(str(model), patience_seconds=45, device="cpu", **options))
        return opened[-1]

    yield open_engine
    for engine in opened:
        await engine.close()


async def test_window_is_heard_with_words_inside_it(
    engine_of: Callable[..., WhisperEngine], model: Path, beckett: Path
) -> None:
    engine = engine_of(model)
    heard = await engine.hear(beckett, WINDOW, language=None)

    # Of a model that knows one language; nothing is detected here.
    assert heard.language == "en"
    assert heard.segments
    for segment in heard.segments:
        assert 0 <= segment.start_seconds <= segment.end_seconds <= 3.5
        assert segment.words
        assert segment.text == segment.text.strip() != ""
        assert segment.text.split() == [word.text for word in segment.words]
        for word in segment.words:
            assert 0 <= word.start_seconds <= word.end_seconds <= 3.5
            assert word.confidence is not None
            assert 0 <= word.confidence <= 1
            assert not word.is_estimated


async def test_language_that_the_model_does_not_know_is_refused(
    engine_of: Callable[..., WhisperEngine], model: Path, beckett: Path
) -> None:
    with pytest.raises(AsrRefused, match=r"'de'.*knows only English"):
        await engine_of(model).hear(beckett, WINDOW, language="de-AT")


async def test_killed_engine_is_unavailable_and_the_next_request_works(
    engine_of: Callable[..., WhisperEngine], model: Path, beckett: Path
) -> None:
    engine = engine_of(model)
    request = asyncio.create_task(engine.hear(beckett, WINDOW, language="en-GB"))
    async with asyncio.timeout(20):
        while engine.pid is None or "worker.asr.whisper_child" not in psutil.Process(engine.pid).cmdline():
            await asyncio.sleep(0.01)
    pid = engine.pid
    os.kill(pid, signal.SIGKILL)

    with pytest.raises(AsrUnavailable, match="SIGKILL"):
        await request
    assert (await engine.hear(beckett, WINDOW, language="en")).language == "en"
    assert engine.pid != pid


async def test_unreadable_sound_is_corrupt_output(
    engine_of: Callable[..., WhisperEngine], model: Path, tmp_path: Path
) -> None:
    (tmp_path / "garbage.wav").write_bytes(b"<html>" * 100)
    with pytest.raises(OutputCorrupt):
        await engine_of(model).hear(tmp_path / "garbage.wav", WINDOW, language="en")


async def test_absent_models_are_refused_without_a_word_to_the_hub(
    engine_of: Callable[..., WhisperEngine], beckett: Path, tmp_path: Path
) -> None:
    for name, said in [
        (str(tmp_path / "absent"), "ASR_MODEL=.*absent is not a directory"),
        ("gigantic", "ASR_MODEL=gigantic: faster-whisper does not know it"),
        ("small", "ASR_MODEL=small is not on this machine, and HF_HUB_OFFLINE"),
    ]:
        with pytest.raises(AsrRefused, match=said):
            await engine_of(name).hear(beckett, WINDOW, language=None)


@pytest.mark.parametrize("missing", ["tokenizer.json", "model.bin"])
async def test_incomplete_directory_is_refused_by_what_it_lacks(
    engine_of: Callable[..., WhisperEngine], model: Path, beckett: Path, tmp_path: Path, missing: str
) -> None:
    shutil.copytree(model, tmp_path / "half", ignore=shutil.ignore_patterns(missing))
    engine = engine_of(tmp_path / "half")

    with pytest.raises(AsrRefused, match=f"lacks {missing}"):
        await engine.hear(beckett, WINDOW, language=None)
    with pytest.raises(AsrRefused, match=f"lacks {missing}"):
        await engine.check()


async def test_wrong_compute_type_is_refused_by_the_setting_s_name(
    engine_of: Callable[..., WhisperEngine], model: Path, beckett: Path
) -> None:
    with pytest.raises(AsrRefused, match=r"as float7.*ASR_COMPUTE_TYPE"):
        await engine_of(model, compute_type="float7").hear(beckett, WINDOW, language=None)


async def test_missing_package_is_refused_and_says_how_to_get_it(
    engine_of: Callable[..., WhisperEngine],
    model: Path,
    beckett: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hider = "import sys\nsys.modules['faster_whisper'] = None\n"
    (tmp_path / "sitecustomize.py").write_text(hider)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(AsrRefused, match=r"pip install 'clipboss\[whisper\]'"):
        await engine_of(model).hear(beckett, WINDOW, language=None)

    monkeypatch.setattr(WhisperEngine, "is_installed", staticmethod(lambda: False))
    with pytest.raises(ConfigError, match=r"clipboss\[whisper\]"):
        await engine_of(model).check()


async def test_check_tells_what_would_be_used(engine_of: Callable[..., WhisperEngine], model: Path) -> None:
    assert str(model) in await engine_of(model).check()
    assert "small" in await engine_of("small").check()
