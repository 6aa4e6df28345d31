"""Media that means harm: small files that ask for much, or that name other files."""

import struct
import subprocess
import zlib
from pathlib import Path

import imageio_ffmpeg

SDP = (
    b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n"
)


def ffconcat(*names: str) -> bytes:
    return ("ffconcat version 1.0\n" + "".join(f"file '{name}'\n" for name in names)).encode()


def box(kind: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">I4s", len(body) + 8, kind) + body


def compressed_index(unpacked_bytes: int) -> bytes:
    """An MP4 whose index unpacks to far more than the file: QuickTime's `cmov`."""
    packed = zlib.compress(bytes(unpacked_bytes), 9)
    index = box(b"cmov", box(b"dcom", b"zlib"), box(b"cmvd", struct.pack(">I", unpacked_bytes), packed))
    return box(b"ftyp", b"qt  ", bytes(4), b"qt  ") + box(b"moov", index) + box(b"mdat", bytes(1000))


def claims_samples(film: bytes, count: int) -> bytes:
    """The index says that the first chunk holds `count` samples of one byte, and it takes memory to believe it."""
    at = film.index(b"stsz") + 4
    film = film[:at] + struct.pack(">III", 0, 1, count) + film[at + 12 :]
    at = film.index(b"stsc") + 4
    return film[:at] + struct.pack(">IIIII", 0, 1, 1, count, 1) + film[at + 20 :]


def _element(tag: str, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return bytes.fromhex(tag) + (len(body) | 1 << 56).to_bytes(8, "big") + body


def subtitle_bomb(blocks: int, unpacked_bytes: int) -> bytes:
    """A Matroska file with nothing but packed subtitles; each unpacks to a thousand times its size."""
    packed = zlib.compress(b"a" * unpacked_bytes, 9)
    encoding = _element("6d80", _element("6240", _element("5034", _element("4254", b"\0"))))
    track = _element(
        "ae", _element("d7", b"\1"), _element("73c5", b"\1"), _element("83", b"\x11"),
        _element("86", b"S_TEXT/UTF8"), encoding,
    )  # fmt: skip
    clusters = [
        _element("1f43b675", _element("e7", struct.pack(">I", n * 1000)), _element("a3", b"\x81\0\0\x80", packed))
        for n in range(blocks)
    ]
    duration = _element("4489", struct.pack(">d", blocks * 1000.0))
    header = _element("1a45dfa3", _element("4282", b"matroska"))
    return header + _element("18538067", _element("1549a966", duration), _element("1654ae6b", track), *clusters)


def _ffmpeg(*args: str) -> None:
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-nostdin", "-y", *args]
    subprocess.run(command, check=True, timeout=60)


def huge_frame(path: Path) -> bytes:
    _ffmpeg("-f", "lavfi", "-i", "color=black:s=15360x8640:r=1", "-frames:v", "1", "-c:v", "mjpeg", str(path))
    return path.read_bytes()


def two_frames_far_apart(path: Path, *, seconds: int) -> bytes:
    apart = f"setpts=N*{seconds}/TB"
    source = ("-f", "lavfi", "-i", "testsrc=s=64x64:r=25:d=0.08")
    _ffmpeg(*source, "-vf", apart, "-fps_mode", "vfr", "-c:v", "mpeg4", str(path))
    return path.read_bytes()


def converted(film: Path, path: Path, *options: str) -> bytes:
    _ffmpeg("-i", str(film), *options, str(path))
    return path.read_bytes()
