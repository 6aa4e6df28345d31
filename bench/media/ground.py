"""What every line of the benchmark stands on: sizes, places, the source and the ffmpeg."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.media.source import NumberedSource, Tell
from worker.domain.media import ClipRange


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured; the issue's targets hold for those of a full run."""

    source_seconds: int = 120
    short_seconds: float = 30
    long_seconds: float = 300
    #: where short clips are cut: how much of them lies in broken groups of pictures is a matter of luck
    places: tuple[float, ...] = (0.2, 0.5, 0.8)
    #: of the remote file that all contenders cut, the source again and again
    talk_seconds: int = 2500
    #: of the remote file whose bytes are counted
    remote_seconds: int = 3600
    #: of one clip through the whole worker, and how often
    rounds: int = 3
    crowd: int = 4
    crowd_seconds: float = 30
    origin_mbit: float = 16


QUICK = Sizes(long_seconds=90, places=(0.5,), talk_seconds=600, remote_seconds=900, rounds=2, crowd_seconds=10)


@dataclass(frozen=True, slots=True)
class Ground:
    sizes: Sizes
    ffmpeg: Path
    source: NumberedSource
    #: of this run, removed after it
    directory: Path
    smartcut: Path | None
    tell: Tell
    #: None = an embedded PostgreSQL
    database_url: str | None = None

    def room(self, name: str) -> Path:
        """A directory of its own, which a database that runs as somebody else may enter too."""
        room = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.directory))
        room.chmod(0o755)
        return room

    def span(self, seconds: float, *, of: NumberedSource | None = None, place: float = 0.5) -> ClipRange:
        """A range that begins neither on a keyframe nor on a frame; of a lengthened source one in its middle."""
        room = max(0.0, self.source.seconds - seconds - 1)
        rounds = round((of or self.source).seconds / self.source.seconds)
        start = rounds // 2 * self.source.seconds + round(room * place) + 0.41
        return ClipRange(start, start + seconds)
