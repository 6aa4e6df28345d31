"""How much a job will read and how much room it needs on the scratch disk, told before it starts."""

from dataclasses import dataclass

from worker.domain.media import CaptionWish, ClipRange, Mode, Probe
from worker.domain.request import ClipRequest
from worker.errors import SourceTooLarge

#: a copy begins up to a group of pictures early, and the edges of a smart cut are encoded anew
EDGE_SECONDS = 10.0
#: an encoded clip may be larger than its source was
ENCODED = 1.5
#: bytes for each pixel and second of picture that is encoded well: 720p takes some 0.8 MB a second at most
BYTES_PER_PIXEL = 0.9
AUDIO_BYTES_PER_SECOND = 24_000
#: 16 kHz mono
SPEECH_BYTES_PER_SECOND = 32_000
#: 48 kHz stereo with 24 bits
MASTER_BYTES_PER_SECOND = 288_000
#: pictures, reports and the like
SMALL_FILES_BYTES = 8 * 2**20
#: a part of a source may be far smaller than its average
UNEVEN = 2.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a job may take, in bytes; None: as much as there is."""

    #: from a remote source
    read_bytes: int | None = None
    #: for each file it writes
    file_bytes: int | None = None


UNBOUNDED = Bounds()


def refuse_too_much(probe: Probe, wanted: ClipRange, *, source_bytes: int, bounds: Bounds) -> None:
    """Who claims to be endless need not be read until the limit to be refused."""
    expected = source_bytes * wanted.duration_seconds / probe.duration_seconds
    if bounds.read_bytes is not None and expected > bounds.read_bytes * UNEVEN:
        raise SourceTooLarge(
            f"{wanted.duration_seconds:.0f} s of the source are about {expected / 2**20:.0f} MB, "
            f"but SOURCE_MAX_MB allows {bounds.read_bytes // 2**20}"
        )


def bytes_needed(
    request: ClipRequest, probe: Probe, wanted: ClipRange, *, source_bytes: int, bounds: Bounds = UNBOUNDED
) -> int:
    """Rather too much than too little; `source_bytes` is 0 where the source does not tell."""
    seconds = wanted.duration_seconds
    has_video = probe.video is not None and request.mode is not Mode.AUDIO
    sound = AUDIO_BYTES_PER_SECOND * seconds if probe.audio is not None else 0.0
    clip = sound + (_picture_bytes(request, probe, seconds, source_bytes) if has_video else 0.0)
    total = clip + SMALL_FILES_BYTES
    if has_video and probe.audio is not None and request.captions is not None:
        is_burnt = request.captions is CaptionWish.BURN
        total += sound + _encoded_bytes(probe, request.max_height) * seconds if is_burnt else clip
    if has_video:
        total += sum(sound + _encoded_bytes(probe, height) * seconds for height in request.renditions)
    if probe.audio is not None:
        total += SPEECH_BYTES_PER_SECOND * seconds
        if request.loudness is not None:
            # the sound apart, and pictures apart until they are joined
            total += MASTER_BYTES_PER_SECOND * seconds + clip
    if bounds.file_bytes is None:
        return round(total)
    files = 2 + len(request.renditions) + (request.captions is not None) + (2 if request.loudness is not None else 0)
    return round(min(total, files * bounds.file_bytes))


def _picture_bytes(request: ClipRequest, probe: Probe, seconds: float, source_bytes: int) -> float:
    source_rate = source_bytes / probe.duration_seconds if probe.duration_seconds else 0.0
    copied = source_rate * (seconds + 2 * EDGE_SECONDS)
    if request.mode is Mode.COPY:
        return copied
    encoded = _encoded_bytes(probe, request.max_height) * seconds
    # bounded by the source: what is small there does not become large
    encoded = min(encoded, source_rate * seconds * ENCODED) if source_rate else encoded
    return max(copied, encoded) if request.mode is Mode.SMART and request.max_height is None else encoded


def _encoded_bytes(probe: Probe, height: int | None) -> float:
    """For one second."""
    assert probe.video is not None, "only pictures are encoded"
    pixels = probe.video.width * probe.video.height
    if height is not None and height < probe.video.height:
        pixels = round(pixels * (height / probe.video.height) ** 2)
    return pixels * BYTES_PER_PIXEL
