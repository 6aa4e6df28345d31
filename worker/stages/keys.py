"""Where a job's artifacts lie: the same keys for every attempt, so that a finished one is found again."""

from pathlib import PurePosixPath

from worker.domain.job import JobId
from worker.domain.media import ArtifactKind, ClipFile
from worker.domain.request import ClipRequest

#: object metadata that tells which request an artifact was made for
FINGERPRINT = "clipboss-fingerprint"

CONTENT_TYPES = {
    ".mp4": "video/mp4",
    ".m4a": "audio/mp4",
    ".jpg": "image/jpeg",
    ".json": "application/json",
}


def artifact_key(request: ClipRequest, job_id: JobId, kind: ArtifactKind, suffix: str) -> str:
    return str(PurePosixPath(request.key_prefix or "", str(job_id), f"{kind}{suffix}"))


def clip_suffix(*, has_video: bool) -> str:
    return ".mp4" if has_video else ".m4a"


def clip_key(request: ClipRequest, job_id: JobId, clip: ClipFile) -> str:
    return artifact_key(request, job_id, ArtifactKind.CLIP, clip_suffix(has_video=clip.has_video))
