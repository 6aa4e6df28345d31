"""Where a job's artifacts lie: the same keys for every attempt, so that a finished one is found again."""

from pathlib import PurePosixPath

from worker.domain.job import JobId
from worker.domain.request import ClipRequest

#: object metadata that tells which request an artifact was made for
FINGERPRINT = "clipboss-fingerprint"

CONTENT_TYPES = {
    ".mp4": "video/mp4",
    ".m4a": "audio/mp4",
    ".jpg": "image/jpeg",
    ".json": "application/json",
    ".vtt": "text/vtt",
    ".srt": "application/x-subrip",
    ".txt": "text/plain; charset=utf-8",
}


def artifact_key(request: ClipRequest, job_id: JobId, file_name: str) -> str:
    return str(PurePosixPath(request.key_prefix or "", str(job_id), file_name))


def clip_name(*, has_video: bool) -> str:
    return "clip.mp4" if has_video else "clip.m4a"


def rendition_name(height: int) -> str:
    return f"clip-{height}.mp4"
