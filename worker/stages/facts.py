"""What is true of a clip travels with it as metadata: a later attempt need not cut it again to know."""

from collections.abc import Mapping
from pathlib import Path

from worker.domain.media import ClipFile, Mode

PREFIX = "clipboss-"


def metadata_of(clip: ClipFile) -> dict[str, str]:
    return {
        f"{PREFIX}mode": clip.mode,
        f"{PREFIX}duration": repr(clip.duration_seconds),
        f"{PREFIX}start": repr(clip.start_seconds),
        f"{PREFIX}end": repr(clip.end_seconds),
        f"{PREFIX}tracks": ",".join(
            name for name, there in (("video", clip.has_video), ("audio", clip.has_audio)) if there
        ),
        f"{PREFIX}frames": str(clip.frames),
        f"{PREFIX}frames-reencoded": str(clip.frames_reencoded),
    }


def clip_from_metadata(metadata: Mapping[str, str], path: Path) -> ClipFile | None:
    """None when the metadata is not ours, or of another release."""
    try:
        tracks = metadata[f"{PREFIX}tracks"].split(",")
        return ClipFile(
            path=path,
            mode=Mode(metadata[f"{PREFIX}mode"]),
            duration_seconds=float(metadata[f"{PREFIX}duration"]),
            start_seconds=float(metadata[f"{PREFIX}start"]),
            end_seconds=float(metadata[f"{PREFIX}end"]),
            has_video="video" in tracks,
            has_audio="audio" in tracks,
            frames=int(metadata[f"{PREFIX}frames"]),
            frames_reencoded=int(metadata[f"{PREFIX}frames-reencoded"]),
        )
    except (KeyError, ValueError):
        return None
