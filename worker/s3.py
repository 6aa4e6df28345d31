"""One way to talk to S3 for everyone who does: options, client, threads, and what its errors mean."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, TypeVar

import boto3
from botocore import exceptions
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from worker.errors import ConfigError

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class S3Options:
    """Where S3 is and who we are; what is None comes from boto3's own chain (profile, instance role)."""

    endpoint_url: str | None = None
    region: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)


class S3Connection:
    """boto3 blocks, so its calls run in a few threads of their own: slow ones cannot starve others."""

    def __init__(self, options: S3Options, *, threads: int = 8) -> None:
        self._options = options
        self.executor = ThreadPoolExecutor(threads, thread_name_prefix="s3")
        self._client: S3Client | None = None
        self._lock = threading.Lock()

    async def call(self, do: "Callable[[S3Client], T]") -> T:
        """Run `do(client)` in a thread; botocore's errors pass through, for `explain`."""
        return await asyncio.get_running_loop().run_in_executor(self.executor, lambda: do(self.client()))

    def client(self) -> "S3Client":
        """Blocks for a fifth of a second the first time: call it in a thread."""
        with self._lock:
            if self._client is None:
                try:
                    self._client = _make_client(self._options)
                except ValueError as exc:
                    raise ConfigError(f"S3_ENDPOINT_URL {self._options.endpoint_url!r} is not a URL") from exc
            return self._client

    async def close(self) -> None:
        self.executor.shutdown(wait=False, cancel_futures=True)
        if self._client is not None:
            self._client.close()


class S3Problem(Enum):
    NO_KEY = auto()
    NO_BUCKET = auto()
    DENIED = auto()
    BAD_NAME = auto()
    CHANGED = auto()
    UNREACHABLE = auto()
    OTHER = auto()


_PROBLEM_OF_CODE = {
    "NoSuchKey": S3Problem.NO_KEY,
    "NoSuchBucket": S3Problem.NO_BUCKET,
    "403": S3Problem.DENIED,
    "AccessDenied": S3Problem.DENIED,
    "AccountProblem": S3Problem.DENIED,
    "AllAccessDisabled": S3Problem.DENIED,
    "ExpiredToken": S3Problem.DENIED,
    "InvalidAccessKeyId": S3Problem.DENIED,
    "InvalidToken": S3Problem.DENIED,
    "SignatureDoesNotMatch": S3Problem.DENIED,
    "InvalidBucketName": S3Problem.BAD_NAME,
    "KeyTooLongError": S3Problem.BAD_NAME,
    "412": S3Problem.CHANGED,
    "PreconditionFailed": S3Problem.CHANGED,
    "416": S3Problem.CHANGED,
    "InvalidRange": S3Problem.CHANGED,
}


def explain(
    error: ClientError | BotoCoreError, bucket: str, *, absent: S3Problem = S3Problem.NO_KEY
) -> tuple[S3Problem, str]:
    """What went wrong: a kind to decide by, and a sentence for a person, without keys or signed URLs.

    An answer to HEAD has no body, only a status: `absent` is what its 404 means.
    """
    if isinstance(error, BotoCoreError):
        return _explain_local(error, bucket)
    code = error.response.get("Error", {}).get("Code", "unknown")
    problem = absent if code == "404" else _PROBLEM_OF_CODE.get(code, S3Problem.OTHER)
    match problem:
        case S3Problem.NO_BUCKET:
            sentence = f"there is no bucket {bucket!r}: create it, or correct the URL"
        case S3Problem.DENIED:
            sentence = f"S3 refused access to bucket {bucket!r} ({code}): check the AWS_* keys and their rights"
        case S3Problem.NO_KEY:
            sentence = f"there is no such object in bucket {bucket!r}"
        case S3Problem.CHANGED:
            sentence = f"the object in bucket {bucket!r} changed while it was read"
        case S3Problem.BAD_NAME:
            sentence = f"S3 knows no such names for buckets or keys ({code}): check bucket {bucket!r} and the key"
        case _:
            sentence = f"S3 answered {code} for bucket {bucket!r}"
    return problem, sentence


def _explain_local(error: BotoCoreError, bucket: str) -> tuple[S3Problem, str]:
    kind = type(error).__name__
    match error:
        case exceptions.NoCredentialsError() | exceptions.PartialCredentialsError():
            return S3Problem.DENIED, "no S3 credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        case exceptions.ParamValidationError():
            return S3Problem.BAD_NAME, f"{bucket!r} is no bucket name, or the key is no key"
        case exceptions.HTTPClientError() | exceptions.ConnectionError():
            return S3Problem.UNREACHABLE, f"S3 does not answer ({kind}): check S3_ENDPOINT_URL"
        case _:
            return S3Problem.OTHER, f"the S3 client failed ({kind})"


def _make_client(options: S3Options) -> "S3Client":
    config = Config(
        # boto3 would sign with version 2 in us-east-1 otherwise, which many servers refuse
        signature_version="s3v4",
        s3={"addressing_style": "path" if options.endpoint_url else "auto"},
        retries={"mode": "standard", "total_max_attempts": 3},
        connect_timeout=5,
        read_timeout=30,
        max_pool_connections=16,
    )
    # a session of its own: boto3's default one is global and not safe to share between threads
    return boto3.session.Session().client(
        "s3",
        endpoint_url=options.endpoint_url,
        # servers that are not AWS do not care, but the signature must name one
        region_name=options.region or ("us-east-1" if options.endpoint_url else None),
        aws_access_key_id=options.access_key_id,
        aws_secret_access_key=options.secret_access_key,
        aws_session_token=options.session_token,
        config=config,
    )
