import imageio_ffmpeg
import pytest

from worker.errors import ConfigError
from worker.media.ffmpeg import ffmpeg_version, find_ffmpeg


def executable(path, text: str = "#!/bin/sh\nexit 0\n"):
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_configured_binary_wins(tmp_path, monkeypatch):
    executable(tmp_path / "ffmpeg")
    monkeypatch.setenv("PATH", str(tmp_path))
    mine = executable(tmp_path / "mine")
    assert find_ffmpeg(str(mine)) == mine


def test_machines_own_comes_next(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_ffmpeg(None) != tmp_path / "ffmpeg"
    assert find_ffmpeg(None) == find_ffmpeg("")
    executable(tmp_path / "ffmpeg")
    assert find_ffmpeg(None) == tmp_path / "ffmpeg"


def test_wrong_setting_is_never_silently_replaced(tmp_path):
    with pytest.raises(ConfigError, match="FFMPEG"):
        find_ffmpeg(str(tmp_path / "nothing"))


def test_nothing_to_find_says_what_to_do(tmp_path, monkeypatch):
    def missing() -> str:
        raise RuntimeError("No ffmpeg exe could be found.")

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(imageio_ffmpeg, "get_ffmpeg_exe", missing)
    with pytest.raises(ConfigError, match="install ffmpeg"):
        find_ffmpeg(None)


async def test_version_is_told(ffmpeg_path):
    assert any(character.isdigit() for character in await ffmpeg_version(ffmpeg_path))


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho hello\n", "no program"])
async def test_binary_that_does_not_work_is_a_configuration_error(tmp_path, text):
    with pytest.raises(ConfigError):
        await ffmpeg_version(executable(tmp_path / "ffmpeg", text))
