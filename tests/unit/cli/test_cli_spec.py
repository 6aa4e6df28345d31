"""What was typed becomes a spec, or one refusal."""

from pathlib import Path

import pytest

from worker.cli.spec import build_spec, is_outside, locate, parse_metadata, read_spec
from worker.errors import InvalidRequest


def test_only_what_was_asked_for_is_in_the_spec() -> None:
    spec = build_spec("https://example.com/a.mp4", {"start": "1:01.5", "end": None, "poster": False})
    assert spec == {"source": "https://example.com/a.mp4", "start": "1:01.5", "poster": False}


def test_file_of_this_machine_becomes_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a #1?.mp4"
    file.touch()
    monkeypatch.chdir(tmp_path)
    assert locate("a #1?.mp4") == file.as_uri()
    assert locate("s3://bucket/key") == "s3://bucket/key"


@pytest.mark.parametrize("source", ["nowhere.mp4", "", "a\0b", "x" * 5000, "~nobody-of-that-name/a.mp4"])
def test_source_that_is_nothing_is_refused(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidRequest):
        build_spec(source, {})


@pytest.mark.parametrize("text", ["{", "nothing", "[" * 100_000])
def test_text_that_is_not_json_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(text)
    with pytest.raises(InvalidRequest, match="is not JSON"):
        read_spec(str(tmp_path / "spec.json"))
    with pytest.raises(InvalidRequest, match="is not JSON"):
        parse_metadata(text)


def test_files_outside_the_roots_are_known_beforehand(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    inside = (tmp_path / "in" / "a b.mp4").as_uri()
    assert not is_outside(inside, [tmp_path / "in"])
    assert is_outside(inside, [])
    assert is_outside((tmp_path / "in" / ".." / "b.mp4").as_uri(), [tmp_path / "in"])
    assert is_outside("file:///a%00b", [tmp_path])
    assert not is_outside("https://example.com/a.mp4", [])
