"""Playlists that mean harm: they name what is not theirs, or more than anybody can keep."""

from pathlib import Path


def hostile(canary: str, canary_port: int, vault: Path) -> dict[str, bytes]:
    """By name; the film itself lies beside them as film.ts."""
    return {
        "hls": hls(f"{canary}/film.ts"),
        "hls_name": hls(f"http://inside.test:{canary_port}/film.ts"),
        "hls_redirect": hls("to_segment.ts"),
        "hls_key": hls("film.ts", key(f"{canary}/key.bin")),
        "hls_key_metadata": hls("film.ts", key("http://169.254.169.254/latest/meta-data/iam/")),
        "hls_file": hls(f"file://{vault}/secret.ts"),
        "hls_data": hls("data:video/mp2t;base64,R0AAEA=="),
        "hls_concat": hls(f"concat:{vault}/secret.ts|{canary}/film.ts"),
        "hls_climbs": hls(f"../../../../..{vault}/secret.ts"),
        "hls_nested": hls("hls.m3u8"),
        "hls_script": hls("ffconcat.mp4"),
        "hls_endless": hls("endless_body.mp4"),
        "hls_map": hls("film.ts", f'#EXT-X-MAP:URI="{canary}/film.mp4"'),
        "hls_live": hls(f"{canary}/film.ts", end=False),
        "hls_master": master(f"{canary}/list.m3u8"),
        "hls_sound": master("hls_friendly.m3u8", sound=f"{canary}/list.m3u8"),
        "hls_friendly": hls("film.ts"),
        "hls_itself": master("hls_itself.m3u8"),
        "hls_million": hls("\n".join(["#EXTINF:1,\nx"] * 1_000_000)),
        "hls_many": hls("\n".join(f"#EXTINF:1,\n{n}" for n in range(100_000))),
        "hls_century": hls("film.ts", "#EXTINF:3153600000,\nfilm.ts"),
        "hls_drm": hls(f"{canary}/film.ts", '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://x"'),
        "dash": dash(f"<BaseURL>{canary}/film.mp4</BaseURL>"),
        "dash_template": dash(template(f"{canary}/$Number$.mp4")),
        "dash_file": dash(f"<BaseURL>file://{vault}/secret.mp4</BaseURL>"),
        "dash_entities": b'<!DOCTYPE MPD [<!ENTITY a SYSTEM "file:///etc/hostname">]>' + dash("&a;"),
        "dash_laughs": laughs() + dash("<BaseURL>&l9;</BaseURL>"),
        "dash_outer": f'<!DOCTYPE MPD SYSTEM "{canary}/x.dtd">'.encode() + dash(""),
        "dash_elements": dash("<S/>" * 1_000_000),
        "dash_repeats": dash(template("$Number$.mp4", '<S d="1" r="999999999999"/>')),
        "dash_live": dash(template(f"{canary}/$Number$.mp4"), kind="dynamic"),
        "dash_drm": dash(template(f"{canary}/$Number$.mp4") + '<ContentProtection schemeIdUri="urn:x"/>'),
    }


def hls(segment: str, *tags: str, end: bool = True) -> bytes:
    lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:8", *tags, "#EXTINF:8,", segment, *(["#EXT-X-ENDLIST"] if end else [])]
    return "\n".join(lines).encode()


def key(url: str) -> str:
    return f'#EXT-X-KEY:METHOD=AES-128,URI="{url}",IV=0x00000000000000000000000000000000'


def master(variant: str, *, sound: str | None = None) -> bytes:
    rendition = f'#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",DEFAULT=YES,URI="{sound}"\n' if sound else ""
    return f'#EXTM3U\n{rendition}#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"\n{variant}\n'.encode()


def dash(inside: str, *, kind: str = "static") -> bytes:
    return f"""<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="{kind}" mediaPresentationDuration="PT8S">
<Period><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1">{inside}
</Representation></AdaptationSet></Period></MPD>""".encode()


def template(media: str, times: str = "") -> str:
    timeline = f"<SegmentTimeline>{times}</SegmentTimeline>" if times else ""
    return f'<SegmentTemplate media="{media}" duration="2">{timeline}</SegmentTemplate>'


def laughs() -> bytes:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    return f'<!DOCTYPE MPD [<!ENTITY l0 "ha">{entities}]>'.encode()
