"""The attacks: what a job asks for, and the code it must end with."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.acceptance.worker.attacks import media, playlists
from tests.acceptance.worker.attacks.origin import HostileOrigin

FORBIDDEN, UNSUPPORTED, INVALID = "SOURCE_FORBIDDEN", "SOURCE_UNSUPPORTED", "INVALID_REQUEST"
NOT_FOUND, TOO_LARGE, EXHAUSTED = "SOURCE_NOT_FOUND", "SOURCE_TOO_LARGE", "RETRIES_EXHAUSTED"
DONE = "done"

#: names that the worker's name server knows; a second answer comes with the second question
NAMES = {
    "inside.test": [["127.0.0.1"]],
    "private.test": [["10.20.30.40", "192.168.7.7", "127.0.0.1"]],
    "metadata.test": [["169.254.169.254"]],
    "mapped.test": [["::ffff:127.0.0.1"]],
    "rebinding.test": [["127.0.0.2"], ["127.0.0.1"]],
}


@dataclass(frozen=True)
class Scene:
    """Where an attack can point to."""

    origin: HostileOrigin
    #: a server on 127.0.0.1 that must never be asked for anything
    canary: str
    canary_port: int
    #: a folder that the worker may read sources from
    open_folder: Path
    #: a folder that nobody may read from
    vault: Path


Spec = Callable[[Scene], dict[str, Any]]


def remote(name: str, **more: Any) -> Spec:
    return lambda scene: {"source": f"{scene.origin.base}/{name}", **more}


def text(source: str, **more: Any) -> Spec:
    """`source` with {canary}, {port} and {vault} filled in."""

    def spec(scene: Scene) -> dict[str, Any]:
        return {"source": source.format(canary=scene.canary, port=scene.canary_port, vault=scene.vault), **more}

    return spec


def local(name: str, **more: Any) -> Spec:
    return lambda scene: {"source": (scene.open_folder / name).as_uri(), **more}


def plant(scene: Scene, film: Path, work: Path) -> None:
    """Put the files of the attacks where the cases look for them."""
    canary, vault = scene.canary, scene.vault
    files = scene.origin.files
    files["film.mp4"] = film.read_bytes()
    files["film.ts"] = media.converted(film, work / "film.ts", "-c", "copy")
    files["sound.mp3"] = media.converted(film, work / "sound.mp3", "-vn")
    lists = playlists.hostile(canary, scene.canary_port, vault) | {
        "sdp": media.SDP,
        "ffconcat": media.ffconcat(f"{canary}/film.mp4", f"file:{vault}/secret.mp4"),
    }
    for name, content in lists.items():
        files[f"{name}.mp4"] = files[f"{name}.m3u8"] = files[f"{name}.mpd"] = content
        (scene.open_folder / f"{name}.mp4").write_bytes(content)
    (scene.open_folder / "siblings.mp4").write_bytes(media.ffconcat("sibling.ts"))
    (scene.open_folder / "sibling.ts").write_bytes(files["film.ts"])
    (scene.open_folder / "link.mp4").symlink_to(vault / "secret.mp4")
    files["huge_frame.mkv"] = media.huge_frame(work / "huge_frame.mkv")
    files["far_apart.mp4"] = media.two_frames_far_apart(work / "far.mp4", seconds=36_000)
    files["subtitles.mkv"] = media.subtitle_bomb(blocks=300, unpacked_bytes=9_000_000)
    files["packed_index.mov"] = media.compressed_index(1 << 30)
    files["samples.mp4"] = media.claims_samples(files["film.mp4"], 40_000_000)
    files["page.html"] = f'<html><body><video src="{canary}/film.mp4"></video></body></html>'.encode()
    scene.origin.redirects |= {
        "to_loopback.mp4": f"{canary}/film.mp4",
        "to_mapped.mp4": f"http://[::ffff:127.0.0.1]:{scene.canary_port}/film.mp4",
        "to_metadata.mp4": "http://169.254.169.254/latest/meta-data/iam/",
        "to_segment.ts": f"{canary}/film.ts",
        "to_file.mp4": f"file://{vault}/secret.mp4",
        "to_name.mp4": f"http://inside.test:{scene.canary_port}/film.mp4",
        "first_hop.mp4": f"{scene.origin.base}/to_loopback.mp4",
        "in_circles.mp4": f"{scene.origin.base}/in_circles.mp4",
    }


CASES: dict[str, tuple[Spec, str]] = {
    # lists that name other things
    "HLS that means no harm": (remote("hls_friendly.m3u8", start=1, end=3, transcript=False), DONE),
    "HLS segment on loopback": (remote("hls.m3u8"), FORBIDDEN),
    "HLS called mp4": (remote("hls.mp4"), FORBIDDEN),
    "HLS segment by a name of loopback": (remote("hls_name.m3u8"), FORBIDDEN),
    "HLS segment redirected to loopback": (remote("hls_redirect.m3u8"), FORBIDDEN),
    "HLS key on loopback": (remote("hls_key.m3u8"), FORBIDDEN),
    "HLS key at the metadata service": (remote("hls_key_metadata.m3u8"), FORBIDDEN),
    "HLS segment in a file": (remote("hls_file.m3u8"), FORBIDDEN),
    "HLS segment in a data URL": (remote("hls_data.m3u8"), FORBIDDEN),
    "HLS segment that ffmpeg would understand": (remote("hls_concat.m3u8"), FORBIDDEN),
    "HLS segment that climbs": (remote("hls_climbs.m3u8"), NOT_FOUND),
    "HLS segment that is a playlist": (remote("hls_nested.m3u8"), UNSUPPORTED),
    "HLS segment that is a script": (remote("hls_script.m3u8"), UNSUPPORTED),
    "HLS segment without end": (remote("hls_endless.m3u8"), TOO_LARGE),
    "HLS init section on loopback": (remote("hls_map.m3u8"), FORBIDDEN),
    "HLS that never ends": (remote("hls_live.m3u8"), UNSUPPORTED),
    "HLS variant on loopback": (remote("hls_master.m3u8"), FORBIDDEN),
    "HLS sound on loopback": (remote("hls_sound.m3u8"), FORBIDDEN),
    "HLS that is its own variant": (remote("hls_itself.m3u8"), UNSUPPORTED),
    "HLS with a million segments": (remote("hls_million.m3u8"), UNSUPPORTED),
    "HLS with too many segments": (remote("hls_many.m3u8"), UNSUPPORTED),
    "HLS with a segment of a century": (remote("hls_century.m3u8"), UNSUPPORTED),
    "HLS that says protected": (remote("hls_drm.m3u8"), UNSUPPORTED),
    "DASH on loopback": (remote("dash.mpd"), FORBIDDEN),
    "DASH called mp4": (remote("dash.mp4"), FORBIDDEN),
    "DASH template on loopback": (remote("dash_template.mpd"), FORBIDDEN),
    "DASH in a file": (remote("dash_file.mpd"), FORBIDDEN),
    "DASH with entities": (remote("dash_entities.mpd"), UNSUPPORTED),
    "DASH with a billion laughs": (remote("dash_laughs.mpd"), UNSUPPORTED),
    "DASH with an outer document type": (remote("dash_outer.mpd"), UNSUPPORTED),
    "DASH of a million elements": (remote("dash_elements.mpd"), UNSUPPORTED),
    "DASH of endless repetition": (remote("dash_repeats.mpd"), UNSUPPORTED),
    "DASH that is live": (remote("dash_live.mpd"), UNSUPPORTED),
    "DASH that is protected": (remote("dash_drm.mpd"), UNSUPPORTED),
    "SDP called mp4": (remote("sdp.mp4"), UNSUPPORTED),
    "ffconcat called mp4": (remote("ffconcat.mp4"), UNSUPPORTED),
    "local HLS": (local("hls.mp4"), UNSUPPORTED),
    "local HLS of a file": (local("hls_file.mp4"), UNSUPPORTED),
    "local DASH": (local("dash.mp4"), UNSUPPORTED),
    "local SDP": (local("sdp.mp4"), UNSUPPORTED),
    "local ffconcat": (local("ffconcat.mp4"), UNSUPPORTED),
    "local ffconcat of a sibling": (local("siblings.mp4"), UNSUPPORTED),
    "link out of the folder": (local("link.mp4"), FORBIDDEN),
    # pages, for which yt-dlp goes to the web
    "page on loopback": (text("ytdlp:{canary}/film.mp4"), FORBIDDEN),
    "page by a name of loopback": (text("ytdlp:http://inside.test:{port}/film.mp4"), FORBIDDEN),
    "page redirected to loopback": (lambda scene: {"source": f"ytdlp:{scene.origin.base}/to_loopback.mp4"}, FORBIDDEN),
    "page with a film on loopback": (lambda scene: {"source": f"ytdlp:{scene.origin.base}/page.html"}, FORBIDDEN),
    "page in a file": (text("ytdlp:file://{vault}/secret.mp4"), INVALID),
    "page that is an option": (text("ytdlp:--exec=touch"), INVALID),
    # strings that ffmpeg would understand
    "data:": (text("data:video/mp4;base64,AAAA"), UNSUPPORTED),
    "concat:": (text("concat:{vault}/secret.ts|{vault}/secret.ts"), UNSUPPORTED),
    "subfile:": (text("subfile,,start,0,end,0,,:{vault}/secret.mp4"), INVALID),
    "pipe:": (text("pipe:0"), UNSUPPORTED),
    "crypto:": (text("crypto:{canary}/film.ts"), UNSUPPORTED),
    "cache:": (text("cache:{canary}/film.mp4"), UNSUPPORTED),
    "hls+http:": (text("hls+{canary}/list.m3u8"), UNSUPPORTED),
    "tcp:": (text("tcp://127.0.0.1:{port}"), UNSUPPORTED),
    "fd:": (text("fd:3"), UNSUPPORTED),
    "lavfi string": (text("movie={vault}/secret.mp4"), INVALID),
    "option": (text("-filter_complex"), INVALID),
    "long option": (text("--protocol_whitelist=ALL"), INVALID),
    "options as a file name": (local("-i"), NOT_FOUND),
    "newline in the source": (text("{canary}/film.mp4\nfile:///etc/passwd"), INVALID),
    "file outside the roots": (text("file://{vault}/secret.mp4"), FORBIDDEN),
    "climbing path": (lambda scene: {"source": f"{scene.open_folder.as_uri()}/%2e%2e/vault/secret.mp4"}, FORBIDDEN),
    # addresses in disguise
    "loopback": (text("{canary}/film.mp4"), FORBIDDEN),
    "localhost": (text("http://localhost:{port}/film.mp4"), NOT_FOUND),
    "decimal address": (text("http://2130706433:{port}/film.mp4"), INVALID),
    "octal address": (text("http://0177.0.0.1:{port}/film.mp4"), INVALID),
    "short address": (text("http://127.1:{port}/film.mp4"), INVALID),
    "IPv6 loopback": (text("http://[::1]:{port}/film.mp4"), FORBIDDEN),
    "mapped address": (text("http://[::ffff:7f00:1]:{port}/film.mp4"), FORBIDDEN),
    "metadata service": (text("http://169.254.169.254/latest/meta-data/"), FORBIDDEN),
    "shared address space": (text("http://100.64.0.1:{port}/film.mp4"), FORBIDDEN),
    "this network": (text("http://0.0.0.0:{port}/film.mp4"), FORBIDDEN),
    "name of loopback": (text("http://inside.test:{port}/film.mp4"), FORBIDDEN),
    "name of private addresses": (text("http://private.test:{port}/film.mp4"), FORBIDDEN),
    "name of the metadata service": (text("http://metadata.test/latest/"), FORBIDDEN),
    "name of a mapped address": (text("http://mapped.test:{port}/film.mp4"), FORBIDDEN),
    "name that changes its address": (
        lambda scene: {"source": f"http://rebinding.test:{scene.origin.port}/slams_the_door.mp4"},
        FORBIDDEN,
    ),
    # redirects
    "redirect to loopback": (remote("to_loopback.mp4"), FORBIDDEN),
    "redirect to a mapped address": (remote("to_mapped.mp4"), FORBIDDEN),
    "redirect to the metadata service": (remote("to_metadata.mp4"), FORBIDDEN),
    "redirect to a file": (remote("to_file.mp4"), FORBIDDEN),
    "redirect to a name of loopback": (remote("to_name.mp4"), FORBIDDEN),
    "second redirect to loopback": (remote("first_hop.mp4"), FORBIDDEN),
    "redirects in circles": (remote("in_circles.mp4"), UNSUPPORTED),
    # media that asks for much
    "15360 x 8640 pixels": (remote("huge_frame.mkv"), UNSUPPORTED),
    "two frames ten hours apart": (remote("far_apart.mp4", transcript=False), "CLIP_FAILED"),
    "subtitles that unpack to gigabytes": (remote("subtitles.mkv"), UNSUPPORTED),
    "index that unpacks to a gigabyte": (remote("packed_index.mov"), UNSUPPORTED),
    "index of forty million samples": (remote("samples.mp4"), UNSUPPORTED),
    # servers that never end, or lie
    "endless body": (remote("endless_body.mp4"), TOO_LARGE),
    "endless film": (remote("endless_film.mp4", start=10, end=3600), "RANGE_OUTSIDE_SOURCE"),
    "endless sound": (remote("endless_sound.mp4"), TOO_LARGE),
    "gzip bomb": (remote("gzip_bomb.mp4"), UNSUPPORTED),
    "gzip bomb in ranges": (remote("gzip_bomb_in_ranges.mp4"), UNSUPPORTED),
    "64 MB header": (remote("huge_header.mp4"), EXHAUSTED),
    "endless headers": (remote("endless_headers.mp4"), EXHAUSTED),
    "head that drips": (remote("dripping_head.mp4"), EXHAUSTED),
    "body that drips": (remote("dripping_body.mp4"), EXHAUSTED),
    "ranges that drip": (remote("dripping_ranges.mp4"), EXHAUSTED),
    "body shorter than announced": (remote("short_body.mp4"), EXHAUSTED),
    "ranges shorter than announced": (remote("claims_more.mp4"), EXHAUSTED),
    "negative length": (remote("negative_length.mp4"), EXHAUSTED),
    "other range than asked for": (remote("other_range.mp4"), EXHAUSTED),
    "no HTTP at all": (remote("no_http.mp4"), EXHAUSTED),
}
