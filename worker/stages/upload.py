"""Upload: the clip and what was made beside it into storage, each once."""

from worker.domain.job import StageName
from worker.domain.media import Artifact, ArtifactKind
from worker.errors import OutputCorrupt, StorageUploadFailed
from worker.stages.base import OutputFile, Work
from worker.stages.facts import metadata_of
from worker.stages.keys import CONTENT_TYPES, FINGERPRINT, artifact_key, clip_name
from worker.storage.base import Storage, StoredObject


class Upload:
    name = StageName.UPLOAD

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def run(self, work: Work) -> None:
        clip = work.clip
        file = OutputFile(ArtifactKind.CLIP, clip_name(has_video=clip.has_video), clip.path)
        # first: who finds it stored looks for the others too
        await store_artifact(self._storage, work, file, extra=metadata_of(clip))
        for number, extra in enumerate(work.extras):
            work.report.progress(0.7 + 0.3 * number / len(work.extras))
            await store_artifact(self._storage, work, extra)


async def fetch_artifact(storage: Storage, work: Work, file: OutputFile) -> StoredObject | None:
    """Bring back what an earlier attempt of the same request stored, if it is there and intact."""
    key = artifact_key(work.resolved.request, work.owner_id, file.name)
    stored = await storage.head(key)
    if stored is None or stored.metadata.get(FINGERPRINT) != _fingerprint(work, file):
        return None
    try:
        await storage.get(key, file.path)
    except OutputCorrupt as exc:
        work.damaged[key] = stored
        await work.report.event("redone:artifact-damaged", {"kind": file.kind, "key": key, "message": str(exc)})
        return None
    await work.report.event("skipped:artifact-exists", {"kind": file.kind, "key": key})
    return stored


async def store_artifact(
    storage: Storage, work: Work, file: OutputFile, *, extra: dict[str, str] | None = None
) -> None:
    """Put a file under its key and note it as the job's artifact; what an earlier attempt stored is kept."""
    key = artifact_key(work.resolved.request, work.owner_id, file.name)
    fingerprint = _fingerprint(work, file)
    content_type = CONTENT_TYPES[file.path.suffix]
    stored = await storage.head(key)
    if stored is None or stored.metadata.get(FINGERPRINT) != fingerprint or key in work.damaged:
        metadata = {FINGERPRINT: fingerprint, **(extra or {})}
        old = work.damaged.get(key, stored)
        stored = await storage.put(key, file.path, content_type=content_type, metadata=metadata, replacing=old)
    if stored.metadata.get(FINGERPRINT) != fingerprint:
        raise StorageUploadFailed(f"{stored.url} was changed by somebody else while it was stored")
    work.artifacts[file.kind if file.height is None else f"{file.kind}-{file.height}"] = Artifact(
        kind=file.kind,
        key=key,
        url=stored.url,
        bytes=stored.size_bytes,
        sha256=stored.sha256,
        content_type=content_type,
        height=file.height,
    )


def _fingerprint(work: Work, file: OutputFile) -> str:
    return work.resolved.request.fingerprint + file.variant
