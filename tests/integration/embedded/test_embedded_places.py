"""Directories that do not suit: said clearly, or worked around without touching what is not ours."""

import os
import resource
import shutil
from pathlib import Path

from embedded_users import User, run_sql

from worker.db.postgres.binaries import find_installation, package_libraries

IS_ROOT = os.geteuid() == 0


def test_directory_without_write_permission_is_named(scratch: Path, ordinary_user: User) -> None:
    closed = scratch / "closed"
    closed.mkdir(mode=0o555)
    error = ordinary_user.hold(closed / "postgres").error
    assert str(closed / "postgres") in error
    assert "Permission denied" in error
    assert "DATABASE_URL" in error


def test_path_through_a_file_is_named(scratch: Path, us: User) -> None:
    (scratch / "file").touch()
    error = us.hold(scratch / "file" / "postgres").error
    assert str(scratch / "file" / "postgres") in error
    assert "Not a directory" in error


def test_full_disk_is_told_in_the_words_of_initdb(scratch: Path, user: User) -> None:
    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    error = user.hold(scratch / "postgres", preexec_fn=no_room).error
    assert f"initdb could not make a database in {scratch / 'postgres'}" in error
    assert not (scratch / "postgres" / "data").exists()

    assert run_sql(user.hold(scratch / "postgres").dsn, "SELECT 1") == 1


def test_lost_password_is_told(scratch: Path, us: User) -> None:
    holder = us.hold(us.prepare(scratch / "postgres"))
    assert holder.dsn
    holder.leave()
    (holder.home.root / "password").unlink()
    assert "password is gone" in us.hold(scratch / "postgres").error


def test_wrong_password_is_told(scratch: Path, us: User) -> None:
    holder = us.hold(us.prepare(scratch / "postgres"))
    assert holder.dsn
    (holder.home.root / "password").write_text("wrong")
    assert "refuses the password" in us.hold(scratch / "postgres").error


def test_data_of_root_lies_elsewhere_when_only_root_may_enter(scratch: Path, us: User) -> None:
    private = scratch / "private"
    private.mkdir(mode=0o700)
    holder = us.hold(private / "deeper" / "postgres")
    try:
        assert run_sql(holder.dsn, "SELECT 1") == 1
        assert (holder.home.root == private / "deeper" / "postgres") is not IS_ROOT
        assert private.stat().st_mode & 0o777 == 0o700
        assert us.hold(private / "deeper" / "postgres").dsn == holder.dsn
    finally:
        us.close()
        shutil.rmtree(holder.home.root)


def test_programs_in_a_private_place_are_used_all_the_same(scratch: Path, us: User) -> None:
    private = scratch / "private"
    private.mkdir(mode=0o700)
    installation = find_installation()
    package = private / installation.parent.name
    shutil.copytree(installation, package / installation.name, ignore=shutil.ignore_patterns("include", "*.a"))
    (package / "__init__.py").touch()
    if (libraries := package_libraries(installation)).is_dir():
        shutil.copytree(libraries, private / libraries.name)
    search_path = os.pathsep.join([str(private), us.environment["PYTHONPATH"]])

    holder = us.hold(scratch / "postgres", environment={"PYTHONPATH": search_path})
    assert run_sql(holder.dsn, "SELECT 1") == 1
    program = holder.postmaster.exe()
    assert program.startswith(str((scratch / "postgres" / "install") if IS_ROOT else private))
    assert private.stat().st_mode & 0o777 == 0o700
