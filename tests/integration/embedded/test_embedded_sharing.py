"""One server, many processes: it starts once, outlives each of its users, and not all of them."""

from pathlib import Path

import psutil
from embedded_users import User, run_sql, wait_until


def test_data_is_kept_between_runs(scratch: Path, user: User) -> None:
    first = user.hold(scratch / "postgres")
    run_sql(first.dsn, "CREATE TABLE kept AS SELECT 42 AS answer")
    server = first.postmaster
    first.leave()
    assert not server.is_running()
    assert first.home.running_server() is None

    second = user.hold(scratch / "postgres")
    assert run_sql(second.dsn, "SELECT answer FROM kept") == 42


def test_server_belongs_to_an_ordinary_account(scratch: Path, user: User) -> None:
    holder = user.hold(scratch / "postgres")
    assert holder.home.root == scratch / "postgres"
    assert holder.postmaster.uids().effective != 0
    assert (holder.home.root / "password").stat().st_mode & 0o777 == 0o600


def test_server_outlives_the_process_that_started_it_and_ends_with_the_last(scratch: Path, user: User) -> None:
    home = user.prepare(scratch / "postgres")
    first = user.hold(home)
    assert first.dsn
    second = user.hold(home)
    assert second.dsn == first.dsn
    server, keeper = second.postmaster, second.keeper

    first.leave()
    assert run_sql(second.dsn, "SELECT 1") == 1
    assert second.postmaster == server

    second.leave()
    assert not server.is_running()
    wait_until(lambda: not keeper.is_running())


def test_server_ends_when_its_only_user_is_killed(scratch: Path, user: User) -> None:
    home = user.prepare(scratch / "postgres")
    holder = user.hold(home)
    server = holder.postmaster
    holder.kill()
    wait_until(lambda: not server.is_running(), seconds=5)


def test_server_stays_when_one_of_two_users_is_killed(scratch: Path, us: User) -> None:
    home = us.prepare(scratch / "postgres")
    doomed, survivor = us.hold(home), us.hold(home)
    assert doomed.dsn == survivor.dsn
    doomed.kill()
    assert run_sql(survivor.dsn, "SELECT 1") == 1
    third = us.hold(home)
    assert third.dsn == survivor.dsn


def test_processes_that_race_to_start_share_one_server(scratch: Path, user: User) -> None:
    home = scratch / "postgres"
    holders = [user.hold(home) for _ in range(4)]
    assert len({holder.dsn for holder in holders}) == 1
    servers = [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if str(home / "data") in (process.info["cmdline"] or [])
    ]
    assert servers == [holders[0].postmaster.pid]


def test_start_during_a_stop_gets_a_fresh_server(scratch: Path, us: User) -> None:
    home = us.prepare(scratch / "postgres")
    first = us.hold(home)
    run_sql(first.dsn, "CREATE TABLE kept AS SELECT 42 AS answer")
    first.kill()
    assert run_sql(us.hold(home).dsn, "SELECT answer FROM kept") == 42
