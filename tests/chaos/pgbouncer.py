"""PgBouncer in transaction mode in front of the database, for some of the workers, where it is installed."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from worker.db.postgres.home import DATABASE, USER

CONFIG = """
[databases]
{database} = host={host} port={target} dbname={database}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 200
server_login_retry = 0.5
ignore_startup_parameters = extra_float_digits
logfile = {directory}/pgbouncer.log
"""


def find_pgbouncer() -> str | None:
    # Debian puts it where only root looks
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@contextmanager
def pgbouncer(
    target_port: int,
    password: str,
    *,
    host: str = "127.0.0.1",
    user: str = USER,
    database: str = DATABASE,
    size: int = 12,
) -> Iterator[int]:
    """The port of a PgBouncer that passes on to `target_port`, over at most `size` connections."""
    program = find_pgbouncer()
    assert program is not None, "pgbouncer is not installed"
    with tempfile.TemporaryDirectory(prefix="clipboss-pgbouncer-") as name:
        directory, port = Path(name), _free_port()
        users, config = directory / "users.txt", directory / "pgbouncer.ini"
        users.write_text(f'"{user}" "{password}"\n')
        config.write_text(
            CONFIG.format(
                host=host, database=database, target=target_port, port=port, users=users, directory=directory, size=size
            )
        )
        argv, account = [program, "-q", str(config)], {}
        if os.geteuid() == 0:
            # it refuses to be root
            nobody = pwd.getpwnam("nobody")
            for path in (directory, users, config):
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
            account = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", **account)
        try:
            _wait_for(port, process)
            yield port
        finally:
            process.kill()
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError as exc:
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("pgbouncer did not come up") from exc
            time.sleep(0.05)
        else:
            return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
