"""Whatever is killed, the next start works and the data is there."""

import json
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

import asyncpg
import psutil
from embedded_users import Holder, User, is_gone, run_sql, wait_until


def kept(holder: Holder) -> None:
    run_sql(holder.dsn, "CREATE TABLE kept AS SELECT 42 AS answer")


def answer(holder: Holder) -> object:
    return run_sql(holder.dsn, "SELECT answer FROM kept")


def test_next_start_recovers_from_a_killed_keeper(scratch: Path, user: User) -> None:
    home = user.prepare(scratch / "postgres")
    holder = user.hold(home, durable=True)
    kept(holder)
    server = holder.postmaster
    holder.keeper.kill()
    assert answer(user.hold(home)) == 42
    assert is_gone(server)


def test_killed_server_comes_back_where_its_users_look_for_it(scratch: Path, user: User) -> None:
    home = user.prepare(scratch / "postgres")
    holder = user.hold(home, durable=True)
    kept(holder)
    was = holder.home.running_server()
    holder.postmaster.kill()

    def is_back() -> bool:
        try:
            return answer(holder) == 42
        except (OSError, asyncpg.PostgresError):
            return False

    wait_until(is_back, seconds=15)
    # It takes connections a moment before the keeper has written down who does.
    wait_until(lambda: holder.home.running_server() not in (None, was), seconds=5)
    assert user.hold(home).dsn == holder.dsn


def test_next_start_recovers_when_everything_was_killed_at_once(scratch: Path, user: User) -> None:
    home = user.prepare(scratch / "postgres")
    holder = user.hold(home, durable=True)
    kept(holder)
    # Stopped first, so that none of them can tidy up when another one dies, and no more of them are started.
    for parent in (holder.keeper, holder.postmaster):
        parent.send_signal(signal.SIGSTOP)
    victims = [holder.keeper, holder.postmaster, *holder.postmaster.children()]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for victim in victims:
            # some of its children come and go by themselves
            with suppress(psutil.NoSuchProcess):
                victim.send_signal(number)
    holder.kill()
    psutil.wait_procs(victims, timeout=5)
    assert (holder.home.data / "postmaster.pid").exists()

    assert answer(user.hold(home)) == 42


def test_pid_file_that_names_another_program_is_no_obstacle(scratch: Path, ordinary_user: User) -> None:
    home = ordinary_user.prepare(scratch / "postgres")
    holder = ordinary_user.hold(home, durable=True)
    kept(holder)
    pid_file = holder.home.data / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    holder.leave()
    bystander = ordinary_user.hold(ordinary_user.prepare(scratch / "other"))
    assert bystander.dsn
    pid_file.write_text("\n".join([str(bystander.process.pid), *lines[1:]]) + "\n")
    os.chown(pid_file, ordinary_user.uid, ordinary_user.gid)

    assert answer(ordinary_user.hold(home)) == 42


def test_killed_initialisation_leaves_nothing_in_the_way(scratch: Path, us: User) -> None:
    home = scratch / "postgres"
    (home / "data.partial").mkdir(parents=True)
    (home / "data.partial" / "PG_VERSION").write_text("18\n")
    assert run_sql(us.hold(home).dsn, "SELECT 1") == 1


def test_record_of_a_server_that_is_gone_is_ignored(scratch: Path, us: User) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        home = us.prepare(scratch / "postgres")
        (home / "server.json").write_text(json.dumps({"port": stranger.getsockname()[1], "pid": os.getpid()}))
        assert run_sql(us.hold(home).dsn, "SELECT 1") == 1


def test_unreadable_record_is_ignored(scratch: Path, us: User) -> None:
    home = us.prepare(scratch / "postgres")
    (home / "server.json").write_text("{")
    assert run_sql(us.hold(home).dsn, "SELECT 1") == 1
