"""What stages tell each other about media: plain values, no I/O."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Mode(StrEnum):
    """How a clip is cut."""

    #: frame-exact, re-encoding as little as possible
    SMART = "smart"
    #: frame-exact, re-encoding everything
    EXACT = "exact"
    #: no re-encoding; starts on the keyframe at or before `start`
    COPY = "copy"
    #: sound only
    AUDIO = "audio"


class ArtifactKind(StrEnum):
    CLIP = "clip"
    POSTER = "poster"
    TRANSCRIPT = "transcript"


@dataclass(frozen=True, slots=True)
class VideoStream:
    codec: str
    width: int
    height: int
    #: average frames per second; None when the container does not tell
    fps: float | None
    #: clockwise degrees a player turns the picture by
    rotation: int = 0
    #: position in the container; None means the first of its kind
    index: int | None = None
    #: when its first frame is shown, on the container's timeline
    start_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class AudioStream:
    codec: str
    sample_rate: int
    channels: int
    #: position in the container; None means the first of its kind
    index: int | None = None
    #: when its first sample sounds, on the container's timeline
    start_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Probe:
    """What a source holds. Times are on the container's timeline, whose zero is `start_seconds` of its own clock."""

    format: str
    duration_seconds: float
    start_seconds: float
    video: VideoStream | None
    audio: AudioStream | None


@dataclass(frozen=True, slots=True)
class ClipRange:
    """`start` ≤ t < `end`, in seconds on the source's timeline."""

    start_seconds: float
    end_seconds: float

    @property
    def duration_seconds(self) -> float:
        return self.end_seconds - self.start_seconds


@dataclass(frozen=True, slots=True)
class ClipFile:
    """A finished, verified clip on disk, and what is true of it."""

    path: Path
    mode: Mode
    duration_seconds: float
    #: where the clip really starts and ends on the source's timeline
    start_seconds: float
    end_seconds: float
    has_video: bool
    has_audio: bool
    #: 0 for sound only
    frames: int = 0
    frames_reencoded: int = 0


@dataclass(frozen=True, slots=True)
class Artifact:
    """An object in storage that belongs to a job."""

    kind: ArtifactKind
    key: str
    url: str
    bytes: int
    sha256: str
    content_type: str


@dataclass(frozen=True, slots=True)
class Segment:
    """Spoken words; times in seconds from the clip's start."""

    start_seconds: float
    end_seconds: float
    text: str


@dataclass(frozen=True, slots=True)
class Transcript:
    engine: str
    language: str
    segments: tuple[Segment, ...] = field(default=())

    @property
    def text(self) -> str:
        return " ".join(segment.text for segment in self.segments)
