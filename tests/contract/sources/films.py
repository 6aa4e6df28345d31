"""Films that are long in seconds and bytes, but made quickly."""

import subprocess
from pathlib import Path

import imageio_ffmpeg

FFMPEG = imageio_ffmpeg.get_ffmpeg_exe()
_FRAGMENTS = "+frag_keyframe+empty_moov+default_base_moof"
#: where the index lies, as movflags
LAYOUTS = {
    "index-last": "+empty_moov-empty_moov",
    "index-first": "+faststart",
    "fragments-with-mfra": _FRAGMENTS,
    "fragments-with-sidx": f"{_FRAGMENTS}+global_sidx+skip_trailer",
    "fragments-without-index": f"{_FRAGMENTS}+skip_trailer",
    "fragments-with-absolute-offsets": "+frag_keyframe+empty_moov+skip_trailer",
}


def ffmpeg(*options: str) -> None:
    subprocess.run([FFMPEG, "-v", "error", "-nostdin", "-y", *options], check=True)


def make_reel(path: Path) -> Path:
    """10 s of noise with B-frames and a tone, about 2.5 megabytes."""
    ffmpeg(
        "-f", "lavfi", "-i", "nullsrc=s=160x90:r=10:d=10,noise=alls=60:allf=t",
        "-f", "lavfi", "-i", "sine=d=10:f=300",
        "-c:v", "libx264", "-preset", "superfast", "-bf", "2", "-g", "20", "-sc_threshold", "0",
        "-b:v", "2000k", "-threads", "1", "-c:a", "aac", "-b:a", "48k", str(path),
    )  # fmt: skip
    return path


def make_film(reel: Path, path: Path, layout: str, *, loops: int) -> Path:
    ffmpeg("-stream_loop", str(loops - 1), "-i", str(reel), "-c", "copy", "-movflags", LAYOUTS[layout], str(path))
    return path
