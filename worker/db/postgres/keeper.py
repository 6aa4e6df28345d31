"""A small detached process that owns the embedded PostgreSQL: the server outlives each of its users, not all.

`python -m worker.db.postgres.keeper HOME REPORT_FD [--volatile]` writes one line of JSON to REPORT_FD:
{"port": …} once the server takes connections, or {"error": …}. It then waits for the exclusive lock on
`users.lock`, which it gets when the last user has gone, left or killed; stops the server; ends.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

from worker.db.postgres.cluster import Cluster
from worker.db.postgres.home import RunningServer, ServerHome
from worker.db.postgres.locks import FileLock
from worker.errors import ClipbossError, DatabaseUnavailable

#: how long a former keeper and its server may take to vanish
TAKEOVER_SECONDS = 20.0
#: a server that keeps dying this soon after its start is broken, not unlucky
EARLY_DEATH_SECONDS = 3.0
MAX_EARLY_DEATHS = 2


class Keeper:
    def __init__(self, home: ServerHome, *, durable: bool) -> None:
        self._home = home
        self._users = FileLock(home.users_lock)
        self._keeper = FileLock(home.keeper_lock)
        self._server_lock = FileLock(home.server_lock)
        self._cluster = Cluster(home, durable=durable)
        self._server: subprocess.Popen[bytes] | None = None
        self._is_unused = threading.Event()

    def run(self, report_fd: int) -> None:
        try:
            port = self._start()
        except (ClipbossError, OSError) as exc:
            _report(report_fd, {"error": str(exc)})
            return
        except Exception:
            _report(report_fd, {"error": traceback.format_exc(limit=-2)})
            raise
        _report(report_fd, {"port": port})
        threading.Thread(target=self._stop_when_unused, daemon=True).start()
        self._serve(port)
        self._home.record(None)
        # Users wait on this order: whoever gets the shared lock next must find no keeper and no server.
        self._server_lock.release()
        self._keeper.release()
        self._users.release()

    def _start(self) -> int:
        deadline = time.monotonic() + TAKEOVER_SECONDS
        self._keeper.acquire(exclusive=True, deadline=deadline)
        self._home.record(None)
        if not self._server_lock.try_acquire(exclusive=True):
            self._cluster.interrupt_orphan()
            self._server_lock.acquire(exclusive=True, deadline=deadline)
        self._cluster.prepare()
        return self._launch(port=None)

    def _launch(self, port: int | None) -> int:
        self._server, port = self._cluster.launch(port, inherited_lock=self._server_lock.fileno())
        self._home.record(RunningServer(port=port, pid=self._server.pid))
        return port

    def _serve(self, port: int) -> None:
        """Wait for the server's end; one killed while in use comes back on the port its users know."""
        early_deaths = 0
        while self._server is not None:
            started_at = time.monotonic()
            self._server.wait()
            lived_seconds = time.monotonic() - started_at
            early_deaths = early_deaths + 1 if lived_seconds < EARLY_DEATH_SECONDS else 0
            if self._is_unused.is_set() or early_deaths > MAX_EARLY_DEATHS:
                return
            try:
                self._launch(port)
            except (DatabaseUnavailable, OSError) as exc:
                sys.stderr.write(f"the server died and did not come back: {exc}\n")
                return
            if self._is_unused.is_set():
                self._interrupt_server()

    def _stop_when_unused(self) -> None:
        self._users.wait_exclusive()
        self._is_unused.set()
        self._interrupt_server()

    def _interrupt_server(self) -> None:
        # PostgreSQL's fast shutdown: clients are cut off, data is written, the next start needs no recovery.
        if self._server is not None:
            self._server.send_signal(signal.SIGINT)


def _report(fd: int, report: dict[str, object]) -> None:
    try:
        os.write(fd, json.dumps(report).encode() + b"\n")
    except BrokenPipeError:
        # The process that wanted the server is gone; the users' lock decides what happens next.
        pass
    finally:
        os.close(fd)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("report_fd", type=int)
    parser.add_argument("--volatile", action="store_true")
    options = parser.parse_args()
    # A grandchild is nobody's zombie: whoever started us may live long and does not wait for us.
    if os.fork():
        os._exit(0)
    Keeper(ServerHome(options.home), durable=not options.volatile).run(options.report_fd)


if __name__ == "__main__":
    main()
