"""A film whose frames tell their numbers, in every form that HLS and DASH know, made by ffmpeg."""

import subprocess
from pathlib import Path

import imageio_ffmpeg

FPS = 25
SECONDS = 20
SEGMENT_SECONDS = 2

HLS = ("-c", "copy", "-f", "hls", "-hls_time", str(SEGMENT_SECONDS), "-hls_playlist_type", "vod")
FMP4 = ("-hls_segment_type", "fmp4")
DASH = ("-c", "copy", "-f", "dash", "-seg_duration", str(SEGMENT_SECONDS))

HLS_FORMS: dict[str, tuple[str, ...]] = {
    "ts": (*HLS, "-hls_segment_filename", "s%d.ts", "i.m3u8"),
    "fmp4": (*HLS, *FMP4, "-hls_segment_filename", "s%d.m4s", "i.m3u8"),
    "ranges": (*HLS, *FMP4, "-hls_flags", "single_file", "-hls_segment_filename", "all.mp4", "i.m3u8"),
    "aes": (*HLS, "-hls_key_info_file", "key.info", "-hls_segment_filename", "s%d.ts", "i.m3u8"),
    "sound apart": (
        *HLS, *FMP4, "-map", "0:v", "-map", "0:a", "-var_stream_map", "v:0,agroup:a a:0,agroup:a,default:yes",
        "-master_pl_name", "i.m3u8", "-hls_fmp4_init_filename", "init_%v.mp4",
        "-hls_segment_filename", "%v_%d.m4s", "%v.m3u8",
    ),
}  # fmt: skip
DASH_FORMS: dict[str, tuple[str, ...]] = {
    "timeline": (*DASH, "i.mpd"),
    "numbers": (*DASH, "-use_timeline", "0", "i.mpd"),
    "list": (*DASH, "-use_template", "0", "i.mpd"),
    "list of ranges": (*DASH, "-single_file", "1", "i.mpd"),
}
INDEXED = "".join(
    f'<AdaptationSet mimeType="{kind}/mp4"><Representation id="{kind}" bandwidth="1"><BaseURL>{kind}.mp4</BaseURL>'
    "</Representation></AdaptationSet>"
    for kind in ("video", "audio")
)


def make_streams(film: Path, root: Path) -> None:
    """One directory a form, with its playlist called i.m3u8 or i.mpd."""
    for form, options in {**HLS_FORMS, **DASH_FORMS}.items():
        directory = root / form
        directory.mkdir()
        (directory / "key.bin").write_bytes(bytes(range(16)))
        (directory / "key.info").write_text("key.bin\nkey.bin\n")
        ffmpeg(directory, "-i", str(film), *options)
    make_indexed(film, root / "index")


def make_indexed(film: Path, directory: Path) -> None:
    """A file for each track, with an index that the manifest says nothing about."""
    directory.mkdir()
    for kind in ("video", "audio"):
        fragments = ("-movflags", "+dash+global_sidx+frag_keyframe")
        ffmpeg(directory, "-i", str(film), "-map", f"0:{kind[0]}", "-c", "copy", *fragments, f"{kind}.mp4")
    (directory / "i.mpd").write_text(mpd(INDEXED))


def mpd(body: str, **attributes: str) -> str:
    told = {"type": "static", "mediaPresentationDuration": f"PT{SECONDS}S", **attributes}
    written = " ".join(f'{name}="{value}"' for name, value in told.items())
    return f'<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" {written}><Period>{body}</Period></MPD>'


def ffmpeg(directory: Path, *options: str) -> None:
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-nostdin", "-y", *options]
    subprocess.run(command, check=True, cwd=directory, timeout=60)
