"""A clip beside its source: which frames, when, how clean, and whether the sound is where it was."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from subprocess import run

import av
import numpy as np
from numpy.typing import NDArray

from tests.integration.media.libde265 import decode_luma
from worker.media.frame_code import read_frame_number

RATE = 16_000


@dataclass(frozen=True)
class Sound:
    """Samples on the container's timeline."""

    start_seconds: float
    samples: NDArray[np.float32]

    def between(self, start: float, end: float) -> NDArray[np.float32]:
        first = round((start - self.start_seconds) * RATE)
        assert first >= 0
        return self.samples[first : first + round((end - start) * RATE)]


@dataclass(frozen=True)
class Watched:
    """Frames by libavcodec, timed on the container's timeline."""

    numbers: list[int | None]
    times: list[float]
    #: of every sample of every plane
    digests: list[bytes]


def watch(path: Path, *, quarter_turns: int = 0, is_clip: bool = False) -> Watched:
    """A source's timeline starts with its first packet; a clip's starts at 0, whatever comes up there."""
    watched = Watched([], [], [])
    with av.open(str(path)) as container:
        zero = 0 if is_clip else (container.start_time or 0) / av.time_base
        container.streams.video[0].thread_type = "AUTO"
        for frame in container.decode(video=0):
            assert not frame.is_corrupt
            watched.numbers.append(read_frame_number(np.rot90(frame.to_ndarray(format="gray"), quarter_turns)))
            watched.times.append(frame.time - zero)
            watched.digests.append(md5(frame.to_ndarray().tobytes()).digest())
    return watched


def listen(path: Path, *, is_clip: bool = False) -> Sound:
    resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
    parts, heard, start = list[NDArray[np.float32]](), 0, None
    with av.open(str(path)) as container:
        zero = 0 if is_clip else (container.start_time or 0) / av.time_base
        for frame in container.decode(audio=0):
            start = frame.time - zero if start is None else start
            missing = round((frame.time - zero - start) * RATE) - heard
            # a resampler holds a little back, which is no hole
            silence = [np.zeros(missing, np.float32)] if missing > RATE // 50 else []
            parts += [*silence, *(piece.to_ndarray()[0] for piece in resampler.resample(frame))]
            heard = sum(map(len, parts))
    parts += [piece.to_ndarray()[0] for piece in resampler.resample(None)]
    assert start is not None
    return Sound(start, np.concatenate(parts))


def lag_seconds(original: NDArray[np.float32], heard: NDArray[np.float32]) -> float:
    """How much later `heard` sounds, by the peak of their correlation."""
    size = 1 << (len(original) + len(heard)).bit_length()
    spectrum = np.fft.rfft(heard, size) * np.conj(np.fft.rfft(original, size))
    peak = int(np.argmax(np.fft.irfft(spectrum, size)))
    return (peak if peak < size // 2 else peak - size) / RATE


def complaints(ffmpeg: Path, path: Path) -> str:
    """What libavcodec has to say against a file, sound and picture."""
    command = [str(ffmpeg), "-v", "error", "-err_detect", "explode", "-i", str(path), "-f", "null", "-"]
    return run(command, capture_output=True, text=True, timeout=30, check=False).stderr


#: what each coding is decoded with a second time; nothing else at hand decodes H.264 with ten bits or 4:2:2
OTHER_DECODERS = {
    ("h264", "yuv420p"): "libopenh264",
    ("h264", "yuvj420p"): "libopenh264",
    ("vp9", "yuv420p"): "libvpx-vp9",
}


def watch_by_another(ffmpeg: Path, path: Path, *, quarter_turns: int = 0) -> list[int | None] | None:
    """Frame numbers by another decoder than libavcodec's own; None where there is none."""
    with av.open(str(path)) as container:
        picture = container.streams.video[0].codec_context
        name, format_name, size = picture.name, picture.pix_fmt, (picture.width, picture.height)
    if name == "hevc":
        pictures = _by_libde265(ffmpeg, path)
    elif other := OTHER_DECODERS.get((name, format_name)):
        pictures = _by_ffmpeg(ffmpeg, path, other, size)
    else:
        return None
    return [read_frame_number(np.rot90(picture, quarter_turns)) for picture in pictures]


def _by_ffmpeg(ffmpeg: Path, path: Path, decoder: str, size: tuple[int, int]) -> Iterable[NDArray[np.uint8]]:
    command = [str(ffmpeg), "-v", "error", "-noautorotate", "-c:v", decoder, "-i", str(path), "-an"]
    command += ["-fps_mode", "passthrough", "-pix_fmt", "gray", "-f", "rawvideo", "-"]
    done = run(command, capture_output=True, timeout=30, check=True)
    assert done.stderr == b""
    return np.frombuffer(done.stdout, np.uint8).reshape(-1, size[1], size[0])


def _by_libde265(ffmpeg: Path, path: Path) -> Iterable[NDArray[np.uint8]]:
    command = [str(ffmpeg), "-v", "error", "-i", str(path), "-map", "0:v", "-c", "copy", "-f", "hevc", "-"]
    done = run(command, capture_output=True, timeout=30, check=True)
    frames = decode_luma(done.stdout)
    shift = 2 if max(int(frame.max()) for frame in frames) > 255 else 0
    return [(frame >> shift).astype(np.uint8) for frame in frames]
