"""What pages leave in storage until they are put together: where it lies, and how it goes away."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from worker.domain.job import JobId
from worker.domain.paging import OWN_HEIGHT, Chain, PageKind
from worker.domain.request import ClipRequest
from worker.stages.keys import artifact_key
from worker.storage.base import Storage

SOUND_NAME: Final = "pages/sound.m4a"
_FRAMES: Final = "clipboss-frames"
_ZERO: Final = "clipboss-zero-ticks"
_CPU_FALLBACK: Final = "clipboss-cpu-fallback"


def picture_name(offset: int, height: int) -> str:
    return f"pages/{offset:05}.mp4" if height == OWN_HEIGHT else f"pages/{offset:05}-{height}.mp4"


def page_names(chains: Iterable[Chain]) -> set[str]:
    """Everything that pages of these chains may have stored."""
    names = set()
    for chain in chains:
        match chain.kind:
            case PageKind.PICTURES:
                offsets = range(chain.first, chain.past)
                names |= {picture_name(offset, height) for offset in offsets for height in chain.heights}
            case PageKind.SOUND:
                names.add(SOUND_NAME)
            case PageKind.SPEECH:
                pass
    return names


async def remove_pages(storage: Storage, request: ClipRequest, run_id: JobId, chains: Iterable[Chain]) -> None:
    for name in sorted(page_names(chains)):
        await storage.delete(artifact_key(request, run_id, name))


def picture_metadata(frames: int, zero_ticks: int, cpu_fallback: str) -> dict[str, str]:
    told = cpu_fallback.encode("ascii", "replace").decode()[:200]
    return {_FRAMES: str(frames), _ZERO: str(zero_ticks), _CPU_FALLBACK: told}


def picture_facts(metadata: Mapping[str, str]) -> dict[str, Any] | None:
    """None when the metadata is of another release."""
    try:
        return {
            "frames": int(metadata[_FRAMES]),
            "zero_ticks": int(metadata[_ZERO]),
            "cpu_fallback": metadata[_CPU_FALLBACK],
        }
    except (KeyError, ValueError):
        return None
