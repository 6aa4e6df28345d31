"""The other contenders: plain ffmpeg over the URL, and the smartcut package in an environment of its own."""

import sys
from pathlib import Path
from typing import Final

from bench.cost import PeerFailed, run_command
from bench.media.source import Tell
from worker.domain.media import ClipRange

#: it pins a PyAV that is older than ours
SMARTCUT: Final = "smartcut==1.7"


def veryfast_argv(ffmpeg: Path, url: str, wanted: ClipRange, output: Path) -> list[str]:
    """What people type for an exact clip."""
    encoding = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-c:a", "aac", "-b:a", "128k"]
    return [*_from_url(ffmpeg, url, wanted), *encoding, "-movflags", "+faststart", str(output)]


def copy_argv(ffmpeg: Path, url: str, wanted: ClipRange, output: Path) -> list[str]:
    """What people type for a quick clip."""
    return [*_from_url(ffmpeg, url, wanted), "-c", "copy", "-movflags", "+faststart", str(output)]


def smartcut_argv(binary: Path, url: str, wanted: ClipRange, output: Path) -> list[str]:
    keep = f"{wanted.start_seconds},{wanted.end_seconds}"
    return [str(binary), url, str(output), "--keep", keep, "--log-level", "error"]


async def ensure_smartcut(folder: Path, tell: Tell) -> Path | None:
    """Its command, installed once below `folder`; None where it cannot be installed."""
    environment = folder / SMARTCUT.replace("==", "-")
    binary = environment / "bin" / "smartcut"
    if binary.is_file():
        return binary
    tell(f"installing {SMARTCUT} into an environment of its own")
    uv = [sys.executable, "-m", "uv", "--quiet"]
    try:
        await run_command([*uv, "venv", "--clear", "--python", sys.executable, str(environment)])
        await run_command([*uv, "pip", "install", "--python", str(environment / "bin" / "python"), SMARTCUT])
    except PeerFailed as exc:
        tell(f"{SMARTCUT} could not be installed, the benchmark goes on without it: {exc}")
        return None
    return binary


def _from_url(ffmpeg: Path, url: str, wanted: ClipRange) -> list[str]:
    quiet = [str(ffmpeg), "-nostdin", "-y", "-loglevel", "error"]
    return [*quiet, "-ss", str(wanted.start_seconds), "-i", url, "-t", str(wanted.duration_seconds)]
