"""Which ffmpeg is used: the configured one, the machine's, or the one that came with the installation."""

import shutil
from pathlib import Path

import imageio_ffmpeg

from worker.errors import ConfigError, RetryableError
from worker.media.process import Limits, run_child


def find_ffmpeg(configured: str | None) -> Path:
    """Takes what the operator chose and never silently replaces it."""
    if configured:
        found = shutil.which(configured)
        if found is None:
            raise ConfigError(f"FFMPEG names {configured!r}, which is no executable: correct it or leave it unset")
        return Path(found)
    if found := shutil.which("ffmpeg"):
        return Path(found)
    try:
        return Path(imageio_ffmpeg.get_ffmpeg_exe())
    except RuntimeError as exc:
        raise ConfigError(
            "no ffmpeg found: install ffmpeg, or the package imageio-ffmpeg, or set FFMPEG to its path"
        ) from exc


async def ffmpeg_version(binary: Path) -> str:
    """What the binary calls itself, such as `9.0.2-static`."""
    try:
        result = await run_child([str(binary), "-version"], limits=Limits(wall_seconds=10))
    except RetryableError as exc:
        raise ConfigError(f"{binary} does not start: {exc}") from exc
    words = result.stdout.decode(errors="replace").split()
    if not result.ok or words[:2] != ["ffmpeg", "version"]:
        raise ConfigError(f"{binary} is no working ffmpeg: `-version` ended with {result.exit_code}")
    return words[2]
