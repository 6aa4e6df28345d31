"""Upload: clip and poster into storage, each once."""

from pathlib import Path

from worker.domain.job import StageName
from worker.domain.media import Artifact, ArtifactKind
from worker.stages.base import Work
from worker.stages.facts import metadata_of
from worker.stages.keys import CONTENT_TYPES, FINGERPRINT, artifact_key, clip_key
from worker.storage.base import Storage


class Upload:
    name = StageName.UPLOAD

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def run(self, work: Work) -> None:
        request = work.resolved.request
        key = clip_key(request, work.job_id, work.clip)
        await store_artifact(self._storage, work, ArtifactKind.CLIP, key, work.clip.path, extra=metadata_of(work.clip))
        work.report.progress(0.8)
        if work.poster is not None:
            key = artifact_key(request, work.job_id, ArtifactKind.POSTER, work.poster.suffix)
            await store_artifact(self._storage, work, ArtifactKind.POSTER, key, work.poster)


async def store_artifact(
    storage: Storage,
    work: Work,
    kind: ArtifactKind,
    key: str,
    path: Path,
    *,
    extra: dict[str, str] | None = None,
) -> None:
    """Put a file under its key and note it as the job's artifact; what an earlier attempt stored is kept."""
    fingerprint = work.resolved.request.fingerprint
    content_type = CONTENT_TYPES[path.suffix]
    stored = await storage.head(key)
    if stored is None or stored.metadata.get(FINGERPRINT) != fingerprint:
        metadata = {FINGERPRINT: fingerprint, **(extra or {})}
        stored = await storage.put(key, path, content_type=content_type, metadata=metadata)
    work.artifacts[kind] = Artifact(
        kind=kind,
        key=key,
        url=stored.url,
        bytes=stored.size_bytes,
        sha256=stored.sha256,
        content_type=content_type,
    )
