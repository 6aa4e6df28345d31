"""Every error this project raises on purpose, as one tree.

ClipbossError
├── ConfigError                CONFIG_INVALID         the operator must change something; the command line exits 2
│   ├── DatabaseUnavailable    DATABASE_UNAVAILABLE
│   └── SchemaUnsupported      SCHEMA_UNSUPPORTED
├── QueueMissing               QUEUE_MISSING
├── JobMissing                 JOB_MISSING
├── LeaseLost                  LEASE_LOST             somebody else owns the job now: drop the work, write nothing
└── JobError
    ├── FatalError             INTERNAL_ERROR         trying again cannot help
    │   ├── InvalidRequest     INVALID_REQUEST
    │   ├── SourceNotFound     SOURCE_NOT_FOUND
    │   ├── SourceForbidden    SOURCE_FORBIDDEN
    │   ├── SourceUnsupported  SOURCE_UNSUPPORTED
    │   ├── SourceTooLarge     SOURCE_TOO_LARGE
    │   ├── RangeOutsideSource RANGE_OUTSIDE_SOURCE
    │   ├── ClipFailed         CLIP_FAILED
    │   ├── AsrRefused         ASR_REFUSED
    │   ├── PageFailed         PAGE_FAILED            with the code of the page, if it has one
    │   ├── RetriesExhausted   RETRIES_EXHAUSTED
    │   ├── PoisonJob          POISON_JOB
    │   └── DeliveryGone       DELIVERY_GONE
    └── RetryableError         INTERNAL_TRANSIENT     a later attempt may succeed
        ├── StorageUploadFailed STORAGE_UPLOAD_FAILED
        ├── YtdlpTimeout       YTDLP_TIMEOUT
        ├── ClipTimeout        CLIP_TIMEOUT
        ├── UpstreamFailure    UPSTREAM_FAILURE
        ├── OutputCorrupt      OUTPUT_CORRUPT
        ├── AsrUnavailable     ASR_UNAVAILABLE
        ├── DiskFull           DISK_FULL
        └── JobTimeout         JOB_TIMEOUT
"""

from typing import ClassVar


class ClipbossError(Exception):
    """The message is for a person: what went wrong, where, and what to do."""

    code: str = "CLIPBOSS_ERROR"


class ConfigError(ClipbossError):
    code = "CONFIG_INVALID"


class DatabaseUnavailable(ConfigError):
    code = "DATABASE_UNAVAILABLE"


class SchemaUnsupported(ConfigError):
    code = "SCHEMA_UNSUPPORTED"


class QueueMissing(ClipbossError):
    code = "QUEUE_MISSING"


class JobMissing(ClipbossError):
    code = "JOB_MISSING"


class LeaseLost(ClipbossError):
    code = "LEASE_LOST"


class JobError(ClipbossError):
    """Ends an attempt; `retryable` decides whether another one is worth it."""

    retryable: ClassVar[bool] = False


class FatalError(JobError):
    code = "INTERNAL_ERROR"


class InvalidRequest(FatalError):
    code = "INVALID_REQUEST"


class SourceNotFound(FatalError):
    code = "SOURCE_NOT_FOUND"


class SourceForbidden(FatalError):
    code = "SOURCE_FORBIDDEN"


class SourceUnsupported(FatalError):
    code = "SOURCE_UNSUPPORTED"


class SourceTooLarge(FatalError):
    code = "SOURCE_TOO_LARGE"


class RangeOutsideSource(FatalError):
    code = "RANGE_OUTSIDE_SOURCE"


class ClipFailed(FatalError):
    code = "CLIP_FAILED"


class AsrRefused(FatalError):
    code = "ASR_REFUSED"


class PageFailed(FatalError):
    code = "PAGE_FAILED"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


class RetriesExhausted(FatalError):
    code = "RETRIES_EXHAUSTED"


class PoisonJob(FatalError):
    code = "POISON_JOB"


class DeliveryGone(FatalError):
    code = "DELIVERY_GONE"


class RetryableError(JobError):
    code = "INTERNAL_TRANSIENT"
    retryable = True


class StorageUploadFailed(RetryableError):
    code = "STORAGE_UPLOAD_FAILED"


class YtdlpTimeout(RetryableError):
    code = "YTDLP_TIMEOUT"


class ClipTimeout(RetryableError):
    code = "CLIP_TIMEOUT"


class UpstreamFailure(RetryableError):
    code = "UPSTREAM_FAILURE"


class OutputCorrupt(RetryableError):
    code = "OUTPUT_CORRUPT"


class AsrUnavailable(RetryableError):
    code = "ASR_UNAVAILABLE"


class DiskFull(RetryableError):
    code = "DISK_FULL"


class JobTimeout(RetryableError):
    code = "JOB_TIMEOUT"
