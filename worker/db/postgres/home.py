"""Where an embedded server lives on disk, and what it leaves there for the processes that share it."""

import hashlib
import json
import os
import secrets
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from worker.db.postgres.binaries import account_for
from worker.errors import DatabaseUnavailable

USER = "clipboss"
DATABASE = "clipboss"
SHARED_TEMP = Path("/var/tmp")  # noqa: S108  ownership is checked before use


@dataclass(frozen=True, slots=True)
class RunningServer:
    port: int
    pid: int


@dataclass(frozen=True, slots=True)
class ServerHome:
    """The files of one server."""

    root: Path

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def users_lock(self) -> Path:
        """Shared: every process that uses the server. Exclusive: the keeper, while it stops the server."""
        return self.root / "users.lock"

    @property
    def start_lock(self) -> Path:
        """Exclusive: the process that looks for the server and starts it if need be."""
        return self.root / "start.lock"

    @property
    def keeper_lock(self) -> Path:
        """Exclusive: the keeper, all its life."""
        return self.root / "keeper.lock"

    @property
    def server_lock(self) -> Path:
        """Exclusive: the keeper and, by inheritance, every PostgreSQL process. Free: `data` is at rest."""
        return self.root / "server.lock"

    @property
    def server_log(self) -> Path:
        return self.root / "postgres.log"

    @property
    def keeper_log(self) -> Path:
        return self.root / "keeper.log"

    @property
    def installations(self) -> Path:
        return self.root / "install"

    def password(self) -> str:
        """The server's password, made at the first call."""
        path = self.root / "password"
        if path.exists():
            return path.read_text()
        if self.data.exists():
            raise DatabaseUnavailable(
                f"{path} is gone but {self.data} is not: put it back, or remove both to start empty"
            )
        password = secrets.token_urlsafe(24)
        write_private(path, password)
        return password

    def running_server(self) -> RunningServer | None:
        """What the keeper recorded; only worth a look while a keeper lives."""
        try:
            record = json.loads(self._record.read_text())
            return RunningServer(port=int(record["port"]), pid=int(record["pid"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def record(self, server: RunningServer | None) -> None:
        if server is None:
            self._record.unlink(missing_ok=True)
        else:
            write_private(self._record, json.dumps({"port": server.port, "pid": server.pid}))

    @property
    def _record(self) -> Path:
        return self.root / "server.json"


def open_home(directory: Path) -> ServerHome:
    """Make the home in `directory`, or elsewhere when PostgreSQL's account cannot get there."""
    directory = directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    home = ServerHome(directory)
    account = account_for(home.data)
    if account is None:
        return home
    _let_others_pass(directory)
    if account.can_reach(directory):
        return home
    # Opening the user's own directories to everybody is not ours to do.
    return ServerHome(_shared_directory(directory))


def write_private(path: Path, text: str) -> None:
    """Write whole or not at all, readable by its owner only."""
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def last_lines(path: Path, count: int = 8) -> str:
    """The end of a log, for an error message."""
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-count:])
    except OSError:
        return ""


def _shared_directory(directory: Path) -> Path:
    digest = hashlib.sha256(os.fsencode(directory)).hexdigest()[:12]
    parent = SHARED_TEMP if SHARED_TEMP.is_dir() else Path(tempfile.gettempdir())
    shared = parent / f"clipboss-{os.geteuid()}-{digest}"
    shared.mkdir(mode=0o711, exist_ok=True)
    found = shared.lstat()
    # Anybody may write in the parent: a directory made by somebody else is a trap.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise DatabaseUnavailable(f"{shared} belongs to somebody else: remove it, or set DATABASE_URL")
    _let_others_pass(shared)
    return shared


def _let_others_pass(directory: Path) -> None:
    status = directory.stat()
    if status.st_uid == os.geteuid() and not status.st_mode & 0o001:
        directory.chmod(stat.S_IMODE(status.st_mode) | 0o011)
