"""Every storage the project has, ready to be held to one contract."""

import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers import S3Server, seaweedfs
from worker.s3 import S3Connection, S3Options
from worker.storage.base import Storage
from worker.storage.local import LocalStorage
from worker.storage.s3 import S3Storage


@dataclass
class Subject:
    """A storage, and a way behind its back: replace an object's bytes but nothing else."""

    storage: Storage
    tamper: Callable[[str, bytes], None]
    #: put an object that the storage knows nothing about
    place: Callable[[str, bytes], None]
    names: Callable[[], list[str]]


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as server:
        yield server


@pytest.fixture
def s3_options(s3_server: S3Server) -> S3Options:
    return S3Options(
        endpoint_url=s3_server.endpoint_url,
        access_key_id=s3_server.access_key,
        secret_access_key=s3_server.secret_key,
    )


@pytest.fixture(params=["local", "s3"])
async def subject(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Subject]:
    if request.param == "local":
        made = _local(tmp_path / "store")
    else:
        made = _s3(request.getfixturevalue("s3_server"), request.getfixturevalue("s3_options"))
    yield made
    await made.storage.close()


@pytest.fixture
def make_file(tmp_path: Path) -> Callable[[bytes], Path]:
    def make(content: bytes) -> Path:
        path = tmp_path / f"input-{uuid.uuid4().hex}"
        path.write_bytes(content)
        return path

    return make


def _local(root: Path) -> Subject:
    def replace(key: str, content: bytes) -> None:
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_bytes(content)

    def names() -> list[str]:
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and path.name[0] != ".")

    return Subject(LocalStorage(root), replace, replace, names)


def _s3(server: S3Server, options: S3Options) -> Subject:
    prefix, client = f"run-{uuid.uuid4().hex}", server.client()

    def tamper(key: str, content: bytes) -> None:
        name = f"{prefix}/{key}"
        metadata = client.head_object(Bucket=server.bucket, Key=name)["Metadata"]
        client.put_object(Bucket=server.bucket, Key=name, Body=content, Metadata=metadata)

    def place(key: str, content: bytes) -> None:
        client.put_object(Bucket=server.bucket, Key=f"{prefix}/{key}", Body=content)

    def names() -> list[str]:
        found = client.list_objects_v2(Bucket=server.bucket, Prefix=f"{prefix}/").get("Contents", [])
        return sorted(item["Key"].removeprefix(f"{prefix}/") for item in found)

    return Subject(S3Storage(server.bucket, prefix, S3Connection(options)), tamper, place, names)
