"""Whether a clip that was made in pages is the one that is made in one piece: pictures, sound and words."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import av
import numpy as np
from numpy.typing import NDArray

from bench.asr.words import score
from worker.media.frame_code import read_frame_number

#: on each side of a border; a click or a gap would be in there
BORDER_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Decoded:
    frames: int
    #: of when each frame is shown and which number it carries
    order: str
    misnumbered: int
    samples: NDArray[np.float32]
    rate: int


@dataclass(frozen=True, slots=True)
class Comparison:
    frames_apart: int
    misnumbered: int
    is_same_order: bool
    samples_apart: int
    #: of full scale, near the borders and everywhere
    loudest_at_borders: float
    loudest: float
    words_percent: float
    words: int


def clip_of(result: dict[str, object]) -> Path:
    artifacts = result["artifacts"]
    assert isinstance(artifacts, list)
    (url,) = [told["url"] for told in artifacts if told["kind"] == "clip"]
    return Path(urlsplit(url).path)


def decode(path: Path, *, first_number: int = 0) -> Decoded:
    """An error of decoding ends it."""
    frames, misnumbered, order, heard = 0, 0, hashlib.sha256(), list[NDArray[np.float32]]()
    with av.open(str(path)) as container:
        video, audio = container.streams.video[0], container.streams.audio[0]
        for stream in (video, audio):
            stream.codec_context.options = {"err_detect": "explode"}
        video.thread_type = "AUTO"
        for frame in container.decode(video, audio):
            if isinstance(frame, av.VideoFrame):
                number = read_frame_number(frame.to_ndarray(format="gray").astype(np.uint8, copy=False))
                misnumbered += number != first_number + frames
                order.update(f"{frame.time:.6f} {number}\n".encode())
                frames += 1
            elif isinstance(frame, av.AudioFrame):
                heard.append(frame.to_ndarray().astype(np.float32))
        return Decoded(frames, order.hexdigest(), misnumbered, np.concatenate(heard, axis=1)[0], audio.rate)


def compare(whole: Decoded, paged: Decoded, borders: Sequence[float], texts: tuple[str, str]) -> Comparison:
    count = min(whole.samples.size, paged.samples.size)
    apart = np.abs(whole.samples[:count] - paged.samples[:count])
    reach = round(BORDER_SECONDS * whole.rate)
    near = [apart[max(0, round(at * whole.rate) - reach) :][: 2 * reach] for at in borders]
    words = score(*texts)
    return Comparison(
        abs(whole.frames - paged.frames),
        paged.misnumbered,
        whole.order == paged.order,
        abs(whole.samples.size - paged.samples.size),
        max((float(each.max()) for each in near if each.size), default=0.0),
        float(apart.max()) if count else 0.0,
        words.percent,
        words.words,
    )
