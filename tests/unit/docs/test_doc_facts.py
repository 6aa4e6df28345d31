"""What the documents list is what the code has."""

import re
from pathlib import Path

import pytest

from tests.unit.docs.pages import PAGES, ROOT, prose, table_rows
from worker.domain.job import JobStatus, StageName
from worker.domain.media import ArtifactKind, Mode
from worker.domain.outcome import AbortReason
from worker.domain.request import ClipRequest
from worker.errors import ClipbossError, JobError
from worker.settings import Settings

#: names in capitals that are no setting of ours: of tests, of pg-boss's output, of the kernel
OTHERS = {"TEST_DATABASE_URL", "WORKER_VANISHED", "PR_SET_PDEATHSIG"}


def _below(error: type[ClipbossError]) -> list[type[ClipbossError]]:
    return [error, *(each for child in error.__subclasses__() for each in _below(child))]


def _errors() -> dict[str, type[ClipbossError]]:
    return {error.code: error for error in reversed(_below(ClipbossError))}


def _first_cells(page: Path) -> list[tuple[str, list[str]]]:
    return [(name[0], row) for row in table_rows(page) if (name := re.findall(r"^`([^`]+)`", row[0]))]


def test_error_tables_name_every_code_once() -> None:
    documented = [code for code, _ in _first_cells(ROOT / "docs/errors.md")]
    assert sorted(documented) == sorted(_errors())


@pytest.mark.parametrize("page", ["README.md", "docs/errors.md"])
def test_error_tables_tell_rightly_what_is_retried(page: str) -> None:
    rows = [(code, row) for code, row in _first_cells(ROOT / page) if row[2:] and row[2] in {"yes", "no"}]
    assert rows
    for code, row in rows:
        error = _errors()[code]
        assert issubclass(error, JobError), code
        assert row[2] == ("yes" if error.retryable else "no"), code


def test_every_error_of_a_job_tells_whether_it_is_retried() -> None:
    told = {code for code, row in _first_cells(ROOT / "docs/errors.md") if row[2:] and row[2] in {"yes", "no"}}
    assert told == {error.code for error in _below(JobError) if "code" in error.__dict__}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_setting_that_is_named_exists(page: Path) -> None:
    compose = (ROOT / "docker-compose.yml").read_text()
    known = {name.upper() for name in Settings.model_fields} | set(_errors()) | OTHERS
    known |= set(re.findall(r"\$\{([A-Z0-9_]+)", compose))
    named = set(re.findall(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b", page.read_text()))
    assert named <= known


def test_settings_without_effect_are_exactly_those_told() -> None:
    sources = [path.read_text() for path in (ROOT / "worker").rglob("*.py") if path.name != "settings.py"]
    unused = {name for name in Settings.model_fields if not any(f".{name}" in text for text in sources)}
    unused -= {"storage_url"}  # read through `artifacts_url`
    (sentence,) = re.findall(r"without effect yet: (.*?)\.", prose(ROOT / "docs/settings.md"), re.DOTALL)
    assert {name.lower() for name in re.findall(r"`(\w+)`", sentence)} == unused


def test_job_spec_tables_name_every_key() -> None:
    readme = {key for row in table_rows(ROOT / "README.md") for key in re.findall(r"`(\w+)`", row[0])}
    page = set(re.findall(r"`(\w+)`", prose(ROOT / "docs/job-spec.md")))
    assert set(ClipRequest.model_fields) <= readme
    assert set(ClipRequest.model_fields) | {*Mode, *ArtifactKind} <= page


def test_timeline_table_names_every_kind_of_event() -> None:
    documented = {kind for kind, _ in _first_cells(ROOT / "docs/events.md")}
    files = [*(ROOT / "worker").rglob("*.py"), *(ROOT / "worker").rglob("*.sql"), *(ROOT / "migrations").glob("*.sql")]
    text = "\n".join(path.read_text() for path in files)
    written = set(re.findall(r"""["']((?:stage|skipped|retry|requeued|aborted|cancel):[a-z-]+)["']""", text))
    written |= set(re.findall(r"job_events \([^)]*\) VALUES \([^,]+, '([^']+)'\)", text))
    written |= set(re.findall(r"SELECT [^;]*?, '([a-z:]+)' FROM (?:leased|finished|released)", text))
    written |= set(re.findall(r'report\.event\(\s*"([a-z:-]+)"', text))
    written |= set(re.findall(r'put_aside\(\s*lease, "([a-z:-]+)"', text))
    written |= set(re.findall(r"SELECT \$1, '([a-z:]+)'", text))
    written |= {f"aborted:{reason}" for reason in AbortReason}
    written |= {status for status in JobStatus if status.is_final}
    assert documented == written
    assert all(f"`{stage}`" in prose(ROOT / "docs/events.md") for stage in StageName)
