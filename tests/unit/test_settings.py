"""Settings: every problem names its setting."""

from pathlib import Path

import pytest
from dotenv import dotenv_values

from worker.errors import ConfigError
from worker.settings import Settings, load_settings


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_defaults_work_with_nothing_set() -> None:
    settings = load_settings()
    assert (settings.queues, settings.max_concurrency, settings.database_url) == (("clip", "clip.page"), 2, None)
    assert settings.artifacts_url == (Path.cwd() / "scratch" / "artifacts").as_uri()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAX_CONCURRENCY", "0"),
        ("MAX_CONCURRENCY", "many"),
        ("POLL_INTERVAL_SEC", "-1"),
        ("LOG_LEVEL", "loud"),
        ("WEB_PORT", "99999"),
        ("QUEUES", ","),
        ("HEARTBEAT_INTERVAL_SEC", "40"),
        ("ASR_ENGINE", "siri"),
        ("ASR_ENGINE", "http"),
        ("ASR_DEVICE", "tpu"),
        ("ASR_TIMEOUT_SEC", "0"),
        ("YTDLP_PROXY", "socks5://proxy:1080"),
        ("YTDLP_PROXY", "http://proxy"),
        ("YTDLP_PROXY", "http://proxy:port"),
    ],
)
def test_bad_value_names_its_setting(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=name):
        load_settings()


def test_speech_server_needs_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASR_ENGINE", "http")
    with pytest.raises(ConfigError, match="ASR_ENGINE=http needs ASR_URL"):
        load_settings()
    monkeypatch.setenv("ASR_URL", "http://speech:8000/v1")
    assert load_settings().asr_url == "http://speech:8000/v1"


def test_secrets_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:hunter2@db/x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter3")
    monkeypatch.setenv("ASR_API_KEY", "hunter4")
    assert "hunter" not in repr(load_settings())


def test_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".env").write_text("MAX_CONCURRENCY=5\nQUEUES=a, b\n")
    monkeypatch.setenv("MAX_CONCURRENCY", "7")
    settings = load_settings()
    assert (settings.max_concurrency, settings.queues) == (7, ("a", "b"))


def test_misspelt_name_in_the_file_is_refused_and_foreign_ones_are_not() -> None:
    Path(".env").write_text("POSTGRES_PASSWORD=x\nMAX_CONCURENCY=5\n")
    with pytest.raises(ConfigError, match="MAX_CONCURENCY; did you mean MAX_CONCURRENCY"):
        load_settings()


def test_example_file_names_every_setting_with_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    example = Path(__file__).parents[2] / ".env.example"
    lines = [line.lstrip("# ") for line in example.read_text().splitlines() if "=" in line]
    Path("uncommented.env").write_text("\n".join(lines))
    named = dotenv_values("uncommented.env")
    assert set(named) == {name.upper() for name in Settings.model_fields}
    for name, value in named.items():
        if value:
            monkeypatch.setenv(name, value)
    assert load_settings() == Settings(_env_file=None, **_defaults())


def _defaults() -> dict[str, object]:
    return {name: field.default for name, field in Settings.model_fields.items()}
