"""The picture of a clip: frames before the first clean start are encoded, groups are copied, a rest is encoded."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from av.container import OutputContainer
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from worker.media.smart.choice import coding_of
from worker.media.smart.coding import Copier, Described, PlainCopier
from worker.media.smart.edge import EdgeEncoder, decode
from worker.media.smart.order import SmartOrder, Unfit
from worker.media.smart.plan import DecodeTimes, copyable
from worker.media.smart.timeline import picture_timeline

#: what is held in memory until it is known how a group ends
MAX_GROUP_BYTES: Final = 256 * 1024 * 1024
#: starts that are passed over until what lies before the first can no longer matter
MAX_STARTS_HELD: Final = 16
FALLBACK_RATE: Final = Fraction(30)


@dataclass(frozen=True, slots=True)
class Picture:
    packet: "Packet[Any]"
    pts: int
    told: Described

    @property
    def content(self) -> bytes:
        return bytes(self.packet) if self.told.rewritten is None else self.told.rewritten


class PictureTrack:
    """Takes packets in decode order, and writes exactly the frames of the range."""

    def __init__(
        self, stream: VideoStream, order: SmartOrder, output: OutputContainer, on_frame: Callable[[float], None]
    ) -> None:
        assert stream.time_base is not None, "a stream has a clock"
        self._stream, self._order, self._output, self._on_frame = stream, order, output, on_frame
        self._coding = coding_of(stream.codec_context, order)
        self.timeline = picture_timeline(order, stream.time_base)
        self._rate = stream.average_rate or FALLBACK_RATE
        self._edge_extradata = self._new_encoder().extradata
        self._record = self._coding.record(self._edge_extradata)
        self._frame_ticks = max(1, round(1 / self._rate / self.timeline.tick))
        self._decode_times = DecodeTimes(self._coding.reorder_frames, self._frame_ticks)
        self._track = self._new_track()
        self._copier: Copier = PlainCopier()
        self._has_start = self._is_copying = False
        #: the group before the current one, as far as that needs it; at first, what comes before copying starts
        self._before: list[Picture] = []
        self._group: list[Picture] = []
        self._group_bytes = self._starts_held = 0
        self.is_done = False
        self.frames = self.frames_reencoded = 0

    def add(self, packet: "Packet[Any]") -> None:
        if self.is_done:
            return
        picture = self._described(packet)
        if packet.dts is not None and packet.dts >= self.timeline.past_pts:
            # nothing that is shown before the end can follow
            self.finish()
        elif not picture.told.is_start or picture.pts < self.timeline.first_pts:
            self._hold(picture)
        elif picture.pts < self.timeline.past_pts:
            self._start_group(picture)
        elif picture.told.is_open:
            # of what is shown before it, some may belong to the clip
            self._hold(picture)
        else:
            self.finish()

    def finish(self) -> None:
        """The range ends, or the source does."""
        if self.is_done:
            return
        if not self._has_start:
            raise Unfit("no group of pictures begins inside the range")
        self.is_done = True
        self._write_head()
        pts = [picture.pts for picture in self._group]
        count = copyable(pts, self.timeline.past_pts)
        self._copy(self._group[:count])
        self._reencode(sorted(shown for shown in pts[count:] if shown < self.timeline.past_pts))

    def _start_group(self, picture: Picture) -> None:
        if picture.told.is_open and self._has_start and not self._stands_alone():
            # what is proven of the first group must hold for all
            self._starts_held += 1
            if self._starts_held > MAX_STARTS_HELD:
                raise Unfit("its groups of pictures need what lies before them")
            self._hold(picture)
            return
        if self._has_start:
            self._write_head()
            self._copy(self._group)
        # frames that are shown before an open start are predicted from both sides of it
        self._before = self._group if picture.told.is_open or not self._has_start else []
        self._has_start = True
        self._group, self._group_bytes = [], 0
        self._hold(picture)

    def _hold(self, picture: Picture) -> None:
        self._group.append(picture)
        self._group_bytes += picture.packet.size
        if self._group_bytes > MAX_GROUP_BYTES:
            raise Unfit("a group of pictures is too large to hold")

    def _write_head(self) -> None:
        """What is shown before the first start, and also what is stored behind it."""
        if self._is_copying:
            return
        self._is_copying = True
        start, kept = self._group[0].pts, self._kept()
        before = [picture for picture in (*self._before, *self._group) if picture.pts < start]
        shown = sorted(picture.pts for picture in before if not picture.packet.is_discard)
        wanted = [pts for pts in shown if pts >= self.timeline.first_pts]
        opens_at = self.timeline.clip_seconds(min([*wanted, start]))
        if opens_at > self._order.first_frame_by_seconds and len(shown) > len(wanted):
            # nothing moves at the start, as in a screen recording: open with the frame that is still on display
            wanted.insert(0, shown[-len(wanted) - 1])
        self._reencode(wanted)
        if kept[0].told.is_open:
            self._prove(kept)
        self._copier = self._coding.copier(kept[0].content)
        self._group = kept

    def _kept(self) -> list[Picture]:
        """Of a group at which copying starts; what is shown before that belongs to the head."""
        return [picture for picture in self._group if picture.pts >= self._group[0].pts]

    def _stands_alone(self) -> bool:
        if self._is_copying:
            return True
        kept = self._kept()
        copier = self._coding.copier(kept[0].content)
        for picture in kept:
            copier.copy(picture.content)
        return copier.is_settled

    def _prove(self, kept: Sequence[Picture]) -> None:
        """Copied from an open start on, what is shown must be the source's frames to the last bit."""
        pts = sorted(picture.pts for picture in kept)
        copier = self._coding.copier(kept[0].content)
        copies = [_timed(Packet(copier.copy(picture.content)), picture.pts) for picture in kept]
        originals = self._decode(_needed([*self._before, *self._group], set(pts)), pts)
        copied = self._decode(copies, pts, self._record)
        if any(_samples(one) != _samples(two) for one, two in zip(originals, copied, strict=True)):
            raise Unfit("its groups of pictures need what lies before them")

    def _copy(self, group: Sequence[Picture]) -> None:
        for picture in group:
            if picture.packet.is_discard:
                raise Unfit("it hides frames inside the range")
            own = picture.packet
            # a packet that was written is not fit for decoding any more
            packet = Packet(self._copier.copy(picture.content))
            pts, duration = self.timeline.in_clip(picture.pts), (own.duration or 0) * self.timeline.factor
            self._put(packet, pts, duration, is_keyframe=own.is_keyframe)

    def _reencode(self, wanted: Sequence[int]) -> None:
        if not wanted:
            return
        group = self._group if wanted[0] >= self._group[0].pts else [*self._before, *self._group]
        frames = self._decode(_needed(group, set(wanted)), wanted)
        encoder = self._new_encoder()
        if encoder.extradata != self._edge_extradata:
            raise Unfit("the edges cannot share their parameter sets")
        for encoded in encoder.encode(map(self._on_clip_clock, frames)):
            self.frames_reencoded += 1
            self._put(Packet(encoded.content), encoded.pts, self._frame_ticks, is_keyframe=encoded.is_keyframe)

    def _decode(
        self, packets: "Iterable[Packet[Any]]", wanted: Sequence[int], extradata: bytes | None = None
    ) -> Iterator[VideoFrame]:
        return decode(
            self._stream.codec_context, self._told(packets), wanted, threads=self._order.threads, extradata=extradata
        )

    def _told(self, packets: "Iterable[Packet[Any]]") -> "Iterator[Packet[Any]]":
        """A long group takes its time before the first frame of it is written."""
        for packet in packets:
            self._on_frame(0.0)
            yield packet

    def _on_clip_clock(self, frame: VideoFrame) -> VideoFrame:
        assert frame.pts is not None, "only frames with a timestamp are chosen"
        frame.pts, frame.time_base = self.timeline.in_clip(frame.pts), self.timeline.tick
        return frame

    def _put(self, packet: "Packet[Any]", pts: int, duration: int, *, is_keyframe: bool) -> None:
        until_end = self.timeline.past_in_clip - pts
        packet.stream = self._track
        packet.time_base = self.timeline.tick
        packet.pts, packet.dts = pts, self._decode_times.next(pts)
        packet.duration = max(1, min(duration or self._frame_ticks, until_end))
        packet.is_keyframe = is_keyframe
        self._output.mux(packet)
        self.frames += 1
        self._on_frame(float(pts * self.timeline.tick))

    def _described(self, packet: "Packet[Any]") -> Picture:
        if packet.pts is None:
            raise Unfit("its pictures have no timestamps")
        if packet.has_sidedata("new_extradata"):
            raise Unfit("its parameter sets change on the way")
        if packet.has_sidedata("matroska_block_additional"):
            raise Unfit("its pictures are transparent")
        return Picture(packet, packet.pts, self._coding.describe(bytes(packet)))

    def _new_encoder(self) -> EdgeEncoder:
        return EdgeEncoder(self._stream.codec_context, self._coding, self.timeline.tick, self._rate)

    def _new_track(self) -> VideoStream:
        track = self._output.add_stream_from_template(self._stream)
        track.time_base = self.timeline.tick
        track.codec_context.extradata = self._record or None
        if self._coding.tag is not None:
            track.codec_context.codec_tag = self._coding.tag
        return track


def _timed(packet: "Packet[Any]", pts: int) -> "Packet[Any]":
    packet.pts = pts
    return packet


def _samples(frame: VideoFrame) -> bytes:
    return frame.to_ndarray().tobytes()


def _needed(group: Sequence[Picture], chosen: set[int]) -> "list[Packet[Any]]":
    """Frames that no other is predicted from need not be decoded to be thrown away; some cannot be."""
    last = max(at for at, picture in enumerate(group) if picture.pts in chosen)
    return [
        picture.packet
        for picture in group[: last + 1]
        if picture.pts in chosen or (picture.told.is_reference and picture.pts >= group[0].pts)
    ]
