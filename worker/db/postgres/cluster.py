"""initdb and postgres: their command lines, and what can be read off a start that failed."""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from worker.db.postgres.binaries import Account, AccountOptions, account_for, readable_installation
from worker.db.postgres.home import USER, ServerHome, last_lines
from worker.errors import DatabaseUnavailable

START_SECONDS = 25.0
PR_SET_PDEATHSIG = 1

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    # TCP only: socket paths have a length limit that scratch directories exceed
    "unix_socket_directories": "",
    "cluster_name": "clipboss",
    "max_connections": "50",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    # no replicas, so write only what crash recovery needs
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # an ERROR belongs to the client that caused it and may quote its data; LOG and FATAL are about the server
    "log_min_messages": "log",
    "log_checkpoints": "off",
}
VOLATILE_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class Cluster:
    """The data directory and the programs that work on it. The caller holds the server lock."""

    def __init__(self, home: ServerHome, *, durable: bool) -> None:
        self._home = home
        self._durable = durable
        self._account: Account | None = None
        self._bin = Path()

    def prepare(self) -> None:
        """Find the programs, make the data directory if there is none, clear what a crash left."""
        self._account = account_for(self._home.data)
        self._bin = readable_installation(self._account, self._home.installations) / "bin"
        if not self._home.data.exists():
            self._initialise()
        self._drop_misleading_pid_file()
        if self._home.server_log.exists():
            self._home.server_log.replace(self._home.server_log.with_suffix(".log.1"))

    def launch(self, port: int | None, *, inherited_lock: int) -> tuple[subprocess.Popen[bytes], int]:
        """Start postgres, on a free port unless told, and return once it takes connections."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            candidate = port or _free_port()
            server = self._spawn(candidate, inherited_lock)
            if self._wait_until_ready(server, deadline):
                return server, candidate
            reason = last_lines(self._home.server_log)
            # The port was taken in between, or children of a killed server still hold its shared memory.
            if "in use" not in reason or time.monotonic() > deadline:
                raise DatabaseUnavailable(f"PostgreSQL did not start in {self._home.root}:\n{reason}")
            time.sleep(0.1)

    def interrupt_orphan(self) -> None:
        """Stop a server whose keeper was killed. Linux has done so already (see _die_with_keeper)."""
        pid = self._recorded_pid()
        if sys.platform != "linux" and pid is not None:
            os.kill(pid, signal.SIGINT)

    def _initialise(self) -> None:
        # Renamed into place when whole: a killed initdb must not look like a database.
        partial = self._home.data.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700)
        password_file = self._home.root / "initdb.password"
        password_file.unlink(missing_ok=True)
        password_file.touch(mode=0o600)
        try:
            password_file.write_text(self._home.password())
            for path in (partial, password_file):
                if self._account is not None:
                    os.chown(path, self._account.uid, self._account.gid)
            self._run_initdb(partial, password_file)
        finally:
            password_file.unlink(missing_ok=True)
        partial.rename(self._home.data)

    def _run_initdb(self, data: Path, password_file: Path) -> None:
        argv = [str(self._bin / "initdb"), "-D", str(data), "-U", USER, "-E", "UTF8", "--auth=scram-sha-256"]
        argv += [f"--pwfile={password_file}", "--no-instructions", *([] if self._durable else ["--no-sync"])]
        # macOS has no C.UTF-8
        for locale in ("C.UTF-8", "C"):
            done = subprocess.run(
                [*argv, f"--locale={locale}"],
                env=_environment(),
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                **self._as_account,
            )
            if done.returncode == 0:
                return
            if "invalid locale" not in done.stderr:
                break
        output = "\n".join((done.stdout + done.stderr).splitlines()[-8:])
        raise DatabaseUnavailable(f"initdb could not make a database in {self._home.root}:\n{output}")

    def _spawn(self, port: int, inherited_lock: int) -> subprocess.Popen[bytes]:
        settings = SETTINGS | ({} if self._durable else VOLATILE_SETTINGS) | {"port": str(port)}
        argv = [str(self._bin / "postgres"), "-D", str(self._home.data)]
        for name, value in settings.items():
            argv += ["-c", f"{name}={value}"]
        with self._home.server_log.open("ab") as log:
            return subprocess.Popen(
                argv,
                env=_environment(),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(inherited_lock,),
                # The only other thread of a keeper sleeps in a system call and holds no lock.
                preexec_fn=_die_with_keeper(),  # noqa: PLW1509
                **self._as_account,
            )

    @property
    def _as_account(self) -> AccountOptions:
        return self._account.popen_options if self._account else {}

    def _wait_until_ready(self, server: subprocess.Popen[bytes], deadline: float) -> bool:
        while server.poll() is None:
            lines = self._pid_file_lines()
            # The eighth line is the server's own word for its state; pg_ctl reads it the same way.
            if len(lines) > 7 and lines[0] == str(server.pid) and lines[7].strip() == "ready":
                return True
            if time.monotonic() > deadline:
                server.send_signal(signal.SIGINT)
                server.wait()
                return False
            time.sleep(0.01)
        return False

    def _drop_misleading_pid_file(self) -> None:
        """After a crash the recorded pid may be another program's by now; postgres would refuse to start."""
        pid = self._recorded_pid()
        try:
            if pid is not None and Path(f"/proc/{pid}/comm").read_text().strip() != "postgres":
                (self._home.data / "postmaster.pid").unlink()
        except OSError:
            # No such process, or no /proc: postgres tells a stale file by itself.
            return

    def _recorded_pid(self) -> int | None:
        lines = self._pid_file_lines()
        return int(lines[0]) if lines and lines[0].isdigit() else None

    def _pid_file_lines(self) -> list[str]:
        try:
            return (self._home.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return []


def _environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(("PG", "LC_", "LANG"))} | {"LC_ALL": "C"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _die_with_keeper() -> Callable[[], None] | None:
    """Makes the kernel interrupt the server when the keeper dies."""
    if sys.platform != "linux":
        return None
    # Loaded before the fork; called after the child changed its user, which would undo it.
    libc = ctypes.CDLL(None, use_errno=True)
    keeper = os.getpid()

    def ask_for_signal() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGINT)
        if os.getppid() != keeper:
            os._exit(1)

    return ask_for_signal
