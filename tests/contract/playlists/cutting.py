"""Cuts a piece of a stream, and knows which frames it must hold."""

from pathlib import Path

from tests.contract.playlists.streams import FPS, SECONDS
from tests.integration.media.clips import shown
from tests.probing import probe_apart
from worker.domain.media import ClipFile, ClipRange, Mode, Probe
from worker.media.cut import Cutter
from worker.sources.base import OpenedSource


class Piece:
    """What came out, as numbers of frames."""

    def __init__(self, clip: ClipFile, probe: Probe) -> None:
        self.clip = clip
        self._probe = probe
        self.numbers = shown(clip.path).numbers if clip.has_video else []

    def expected(self, start: float, end: float) -> list[int]:
        """The frames on display from `start` to `end`; streams seldom begin with their first frame."""
        assert self._probe.video is not None
        first = self._probe.video.start_seconds
        return [n for n in range(SECONDS * FPS) if start - 0.001 <= n / FPS + first < end - 0.001]


async def cut_piece(
    cutter: Cutter, source: OpenedSource, path: Path, start: float, end: float, *, mode: Mode = Mode.EXACT
) -> Piece:
    probe = await probe_apart(source)
    clip = await cutter.cut(source, probe, ClipRange(start, end), mode=mode, work_path=path)
    return Piece(clip, probe)
