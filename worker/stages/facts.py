"""What is true of a clip travels with it as metadata: a later attempt need not cut it again to know."""

from collections.abc import Mapping
from pathlib import Path

from worker.domain.media import ClipFile, Loudness, Mode

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
        f"{PREFIX}size": f"{clip.width}x{clip.height}",
        f"{PREFIX}keyframe-gap": repr(clip.keyframe_gap_seconds),
        f"{PREFIX}loudness": _loudness_text(clip.loudness),
    }


def clip_from_metadata(metadata: Mapping[str, str], path: Path) -> ClipFile | None:
    """None when the metadata is not ours, or of another release."""
    try:
        tracks = metadata[f"{PREFIX}tracks"].split(",")
        width, height = map(int, metadata[f"{PREFIX}size"].split("x"))
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
            width=width,
            height=height,
            keyframe_gap_seconds=float(metadata[f"{PREFIX}keyframe-gap"]),
            loudness=_loudness_from(metadata[f"{PREFIX}loudness"]),
        )
    except (KeyError, ValueError):
        return None


def _loudness_text(loudness: Loudness | None) -> str:
    if loudness is None:
        return "unknown"
    peak = "none" if loudness.true_peak_dbtp is None else repr(loudness.true_peak_dbtp)
    return f"{loudness.integrated_lufs!r},{loudness.range_lu!r},{peak}"


def _loudness_from(text: str) -> Loudness | None:
    if text == "unknown":
        return None
    integrated, span, peak = text.split(",")
    return Loudness(float(integrated), float(span), None if peak == "none" else float(peak))
