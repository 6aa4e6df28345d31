"""Which ways to code pictures can be cut without encoding all of them anew."""

from collections.abc import Callable
from typing import Final

from av.video.codeccontext import VideoCodecContext

from worker.media.smart.coding import Coding
from worker.media.smart.h264 import H264
from worker.media.smart.hevc import Hevc
from worker.media.smart.order import SmartOrder, Unfit
from worker.media.smart.vp9 import Vp9

CODINGS: Final[dict[str, Callable[[VideoCodecContext, SmartOrder], Coding]]] = {"h264": H264, "hevc": Hevc, "vp9": Vp9}
#: libav calls what it decodes AV1 with by its own name
AV1: Final = frozenset({"av1", "libdav1d", "libaom-av1"})


def coding_of(source: VideoCodecContext, order: SmartOrder) -> Coding:
    if source.name in AV1:
        raise Unfit("its pictures are av1, and an MP4 track of that holds only what one encoder wrote")
    if source.name not in CODINGS:
        raise Unfit(f"its pictures are {source.name}, which is neither h264, hevc nor vp9")
    return CODINGS[source.name](source, order)
