"""How pictures are encoded: by which encoder, how well, and what is done when a hardware encoder fails."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from worker.domain.media import Quality
from worker.errors import ClipFailed, JobError, OutputCorrupt
from worker.media.failure import encoder_failure, failure_of
from worker.media.process import ChildResult, Limits

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Encoding:
    """Visually lossless and quick; more threads would gain little and starve the jobs beside this one."""

    preset: str = "veryfast"
    crf: int = 20
    #: of frames that are shown right beside copied ones
    edge_crf: int = 18
    threads: int = 4
    #: a keyframe at least this often, so that players seek quickly
    gop_frames: int = 120
    audio_bitrate: str = "160k"


QUALITIES: Final = {
    Quality.SMALL: Encoding(preset="fast", crf=26, audio_bitrate="96k"),
    Quality.GOOD: Encoding(),
    Quality.BEST: Encoding(preset="medium", crf=16, edge_crf=16, audio_bitrate="192k"),
}


@dataclass(frozen=True, slots=True)
class VideoEncoder:
    """One of ffmpeg's encoders of H.264. They share no way to say how good a picture shall be."""

    name: str
    options: Callable[[Encoding], dict[str, Any]]
    #: what the encoder takes
    pixel_format: str = "yuv420p"
    #: opened before anything else, with frames carried there by a filter
    device: str = ""

    @property
    def is_hardware(self) -> bool:
        return self.name != CPU.name

    @property
    def setup(self) -> tuple[str, ...]:
        return ("-init_hw_device", f"{self.device}=hw", "-filter_hw_device", "hw") if self.device else ()

    def arguments(self, encoding: Encoding) -> dict[str, Any]:
        common = {"c:v": self.name, "profile:v": "high", "g": encoding.gop_frames}
        return {**common, **self.options(encoding)}

    def failure(self, result: ChildResult, limits: Limits) -> JobError | None:
        return (encoder_failure if self.is_hardware else failure_of)(result, limits)

    def limits(self, limits: Limits) -> Limits:
        """Drivers reserve far more address space than they use, and a driver's exit code is not about ours."""
        return replace(limits, memory_bytes=None, cpu_seconds=None) if self.is_hardware else limits


def _x264(encoding: Encoding) -> dict[str, Any]:
    return {"preset": encoding.preset, "crf": encoding.crf, "threads:v": encoding.threads}


def _nvenc(encoding: Encoding) -> dict[str, Any]:
    return {"preset": "p4", "rc": "vbr", "cq": encoding.crf, "b:v": 0}


def _vaapi(encoding: Encoding) -> dict[str, Any]:
    return {"rc_mode": "CQP", "qp": encoding.crf}


def _qsv(encoding: Encoding) -> dict[str, Any]:
    return {"preset": "faster", "global_quality": encoding.crf}


def _amf(encoding: Encoding) -> dict[str, Any]:
    return {"rc": "cqp", "qp_i": encoding.crf, "qp_p": encoding.crf}


def _videotoolbox(encoding: Encoding) -> dict[str, Any]:
    # its scale is 1 to 100, and more is better
    return {"q:v": 100 - round(encoding.crf * 1.75)}


CPU: Final = VideoEncoder("libx264", _x264)
ENCODERS: Final = {
    encoder.name: encoder
    for encoder in (
        CPU,
        VideoEncoder("h264_nvenc", _nvenc),
        VideoEncoder("h264_vaapi", _vaapi, "nv12", device="vaapi"),
        VideoEncoder("h264_qsv", _qsv, "nv12"),
        VideoEncoder("h264_amf", _amf, "nv12"),
        VideoEncoder("h264_videotoolbox", _videotoolbox),
    )
}


async def with_fallback(encoder: VideoEncoder, attempt: Callable[[VideoEncoder], Awaitable[T]]) -> tuple[T, str]:
    """What the attempt made, and why the processor had to make it; empty when it had not."""
    try:
        return await attempt(encoder), ""
    except (ClipFailed, OutputCorrupt) as exc:
        if not encoder.is_hardware:
            raise
        reason = f"{encoder.name}: {exc}"
    return await attempt(CPU), reason
