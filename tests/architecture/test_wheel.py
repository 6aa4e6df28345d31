"""The wheel carries everything the worker needs at run time."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_wheel_holds_the_sql_and_the_migrations(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (wheel,) = tmp_path.glob("clipboss-*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    wanted = {path.relative_to(ROOT).as_posix() for path in (ROOT / "worker").rglob("*.sql")}
    wanted |= {f"worker/migrations/{path.name}" for path in (ROOT / "migrations").glob("*.sql")}
    assert wanted <= held
    assert not [name for name in held if name.startswith(("tests/", "scratch/", "docs/"))]
