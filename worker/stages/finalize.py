"""Finalize: check that every artifact is really there, and put the result together."""

from dataclasses import asdict
from typing import Any

from worker.domain.job import StageName
from worker.domain.media import Artifact, ArtifactKind
from worker.errors import JobError, StorageUploadFailed
from worker.stages.base import Work
from worker.storage.base import Storage


class Finalize:
    name = StageName.FINALIZE

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def run(self, work: Work) -> None:
        for artifact in work.artifacts.values():
            stored = await self._storage.head(artifact.key)
            if stored is None or stored.sha256 != artifact.sha256:
                raise StorageUploadFailed(
                    f"{artifact.kind} is not in storage any more as it was put there ({artifact.url})"
                )
        clip, wanted = work.clip, work.resolved.wanted
        work.result = {
            "mode": clip.mode,
            "start": round(clip.start_seconds, 6),
            "end": round(clip.end_seconds, 6),
            "start_off_ms": round((clip.start_seconds - wanted.start_seconds) * 1000),
            "end_off_ms": round((clip.end_seconds - wanted.end_seconds) * 1000),
            "duration_ms": round(clip.duration_seconds * 1000),
            "frames": clip.frames,
            "frames_reencoded": clip.frames_reencoded,
            "source_bytes": work.resolved.source.traffic.bytes_fetched,
            "width": clip.width,
            "height": clip.height,
            "loudness": asdict(clip.loudness) if clip.loudness else None,
            "artifacts": [_told(artifact) for artifact in sorted(work.artifacts.values(), key=_place)],
            "transcript": work.transcript.text if work.transcript else None,
            "transcript_error": _reason(work.transcript_error),
            "language": work.transcript.language if work.transcript else None,
            "metadata": work.resolved.request.metadata,
        }


def _place(artifact: Artifact) -> tuple[int, int]:
    """The clip first, the largest rendition before the others: the same order whatever was stored first."""
    return list(ArtifactKind).index(artifact.kind), -(artifact.height or 0)


def _reason(error: JobError | None) -> dict[str, str] | None:
    return {"code": error.code, "message": str(error)} if error else None


def _told(artifact: Artifact) -> dict[str, Any]:
    return {name: value for name, value in asdict(artifact).items() if value is not None}
