"""What stages tell each other about media: plain values, no I/O."""

from dataclasses import dataclass
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


class Quality(StrEnum):
    """How pictures are encoded where they have to be."""

    #: half the size of `good`; differences can be seen when looked for
    SMALL = "small"
    #: nobody sees a difference; quick
    GOOD = "good"
    #: for clips that will be edited again; takes three times as long
    BEST = "best"


class TranscriptWish(StrEnum):
    """What becomes of a job whose speech cannot be recognised."""

    NONE = "none"
    #: it is done without a transcript, and says why
    BEST_EFFORT = "best-effort"
    #: it is tried again, or fails
    REQUIRED = "required"


class CaptionWish(StrEnum):
    """How a clip shows its transcript."""

    #: drawn into the picture
    BURN = "burn"
    #: a subtitle track that players can switch on
    TRACK = "track"


class ArtifactKind(StrEnum):
    CLIP = "clip"
    #: the clip once more, with fewer pixels
    RENDITION = "rendition"
    POSTER = "poster"
    #: one picture made of many small ones
    SPRITE = "sprite"
    #: tells which part of the sprite belongs to which time
    THUMBNAILS = "thumbnails"
    WAVEFORM = "waveform"
    TRANSCRIPT = "transcript"
    #: the transcript as captions, twice, and as plain text
    SRT = "srt"
    VTT = "vtt"
    TEXT = "text"
    #: the clip once more, with captions in its picture or on a track
    CAPTIONED = "captioned"


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
class Loudness:
    """As EBU R 128 measures it."""

    integrated_lufs: float
    range_lu: float
    #: None: digital silence
    true_peak_dbtp: float | None


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
    #: as shown: upright, with square pixels; 0 for sound only
    width: int = 0
    height: int = 0
    #: the longest time from one keyframe to the next
    keyframe_gap_seconds: float = 0.0
    #: None until it was measured, and without sound
    loudness: Loudness | None = None
    #: why a smart cut became an exact one; empty when it did not
    fallback: str = ""
    #: why the configured encoder was replaced by the processor; empty when it was not
    cpu_fallback: str = ""


@dataclass(frozen=True, slots=True)
class Artifact:
    """An object in storage that belongs to a job."""

    kind: ArtifactKind
    key: str
    url: str
    bytes: int
    sha256: str
    content_type: str
    #: of a rendition
    height: int | None = None
