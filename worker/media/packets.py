"""Every packet of a file, looked at without decoding it."""

from dataclasses import dataclass

import av
from av.container import InputContainer
from av.stream import Stream


@dataclass(slots=True)
class StreamScan:
    """What the packets of one stream say."""

    kind: str
    #: bytes that tell the length of each NAL unit; 0 where packets have no such units
    nal_length_bytes: int
    packets: int = 0
    #: of those, what players skip
    hidden: int = 0
    #: when the earliest is shown
    first_seconds: float = float("inf")
    #: when the latest is shown
    last_seconds: float = float("-inf")
    #: when the latest is over
    end_seconds: float = float("-inf")
    #: the first thing that is wrong, or nothing
    damage: str = ""
    #: the longest time from one keyframe to the next, or to the end
    keyframe_gap_seconds: float = 0.0
    _keyframe_seconds: float | None = None
    _last_dts: int | None = None

    def add(self, packet: "av.Packet[Stream]") -> None:
        if packet.pts is None or packet.dts is None:
            self._note(f"packet {self.packets} has no timestamp")
            return
        seconds = float(packet.pts * packet.time_base)
        if self._last_dts is not None and packet.dts <= self._last_dts:
            self._note(f"time runs backwards at {seconds:.3f} s")
        if self.nal_length_bytes and not _units_fit(bytes(packet), self.nal_length_bytes):
            self._note(f"unreadable picture at {seconds:.3f} s")
        self._last_dts = packet.dts
        self.packets += 1
        if packet.is_discard:
            self.hidden += 1
        else:
            self.first_seconds = min(self.first_seconds, seconds)
        self.last_seconds = max(self.last_seconds, seconds)
        self.end_seconds = max(self.end_seconds, seconds + float((packet.duration or 0) * packet.time_base))
        if self._keyframe_seconds is not None:
            self.keyframe_gap_seconds = max(self.keyframe_gap_seconds, seconds - self._keyframe_seconds)
        if packet.is_keyframe:
            self._keyframe_seconds = seconds

    def _note(self, damage: str) -> None:
        self.damage = self.damage or damage


def scan_packets(container: InputContainer) -> list[StreamScan]:
    """One scan per stream of picture or sound that has packets."""
    streams = [stream for stream in container.streams if stream.type in {"video", "audio"}]
    scans = {stream.index: StreamScan(stream.type, _nal_length_bytes(stream)) for stream in streams}
    for packet in container.demux(streams):
        # demuxing ends with an empty packet per stream
        if packet.size:
            scans[packet.stream_index].add(packet)
    return [scan for scan in scans.values() if scan.packets]


def _nal_length_bytes(stream: Stream) -> int:
    """As avcC and hvcC tell; without such a record packets are not made of units."""
    record = stream.codec_context.extradata or b""
    if stream.codec_context.name == "h264" and len(record) > 4 and record[0] == 1:
        return (record[4] & 3) + 1
    if stream.codec_context.name == "hevc" and len(record) > 21 and record[0] == 1:
        return (record[21] & 3) + 1
    return 0


def _units_fit(packet: bytes, length_bytes: int) -> bool:
    """Zeroed or shifted bytes break the chain of lengths, which must end exactly where the packet does."""
    offset = 0
    while offset + length_bytes <= len(packet):
        length = int.from_bytes(packet[offset : offset + length_bytes], "big")
        if length == 0:
            return False
        offset += length_bytes + length
    return offset == len(packet)
