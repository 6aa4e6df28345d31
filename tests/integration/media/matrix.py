"""Inputs of every kind that clips are cut from, and what is true of each of them."""

from dataclasses import dataclass, field
from fractions import Fraction

NTSC = Fraction(30000, 1001)
FILM = Fraction(24000, 1001)

X264 = ("-c:v", "libx264", "-preset", "veryfast", "-threads", "1", "-sc_threshold", "0")
X265 = ("-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1")
AAC = ("-c:a", "aac", "-b:a", "96k")
COPIED_AAC = ("-c:a", "copy")


def h264(gop: int, b_frames: int, *more: str) -> tuple[str, ...]:
    return (*X264, "-g", str(gop), "-bf", str(b_frames), *more)


def open_h264(gop: int, b_frames: int, more: str = "") -> tuple[str, ...]:
    return h264(gop, b_frames, "-b_strategy", "0", "-x264-params", f"open-gop=1{':' if more else ''}{more}")


def x265(gop: int, more: str = "open-gop=0") -> tuple[str, ...]:
    fixed = f"log-level=none:keyint={gop}:min-keyint={gop}:scenecut=0:pools=1:frame-threads=1"
    is_open = "" if "open-gop" in more else ":open-gop=0"
    return (*X265, "-x265-params", f"{fixed}{is_open}:{more}")


def vp9(gop: int, *more: str) -> tuple[str, ...]:
    return ("-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-g", str(gop), "-b:v", "400k", *more)


@dataclass(frozen=True)
class Input:
    """One source and one range of it. The base has numbered frames for 4 s and speech."""

    name: str
    video: tuple[str, ...] = h264(25, 2)
    audio: tuple[str, ...] = COPIED_AAC
    container: str = "mp4"
    fps: Fraction | int = 25
    start: float = 0.7
    end: float = 3.3
    #: ffmpeg options before the base, and other options of the output
    before: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    #: why a smart cut must not be tried; empty when it must work
    fallback: str = ""
    quarter_turns: int = 0
    #: what `copy` says when MP4 cannot hold it
    uncopyable: str = ""
    has_audio: bool = field(default=True)
    #: libvpx hides frames inside of packets only when it sees the source twice
    is_two_pass: bool = False


def late(kind: str, seconds: str) -> tuple[str, ...]:
    """The base a second time, with one kind of track taken from the one that starts later."""
    maps = ("-map", "1:v", "-map", "0:a") if kind == "video" else ("-map", "0:v", "-map", "1:a")
    return ("-itsoffset", seconds, "-i", "BASE", *maps)


OPUS = ("-c:a", "libopus")
TEN_BITS = ("-pix_fmt", "yuv420p10le")
HDR = "master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,1):max-cll=1000,400"
SILENT = ("-an",)
TWO_TRACKS = ("-map", "0:v", "-map", "0:a", "-map", "0:a")
KEEP_SOME = ("-vf", "select='lt(mod(n,7),4)'", "-fps_mode", "vfr")
# darker and lighter, but never so dark that the strip cannot be read
FADING = ("-vf", "eq=brightness=0.15*sin(t*4):eval=frame")
STILL = ("-vf", "select='not(between(n,20,60))'", "-fps_mode", "vfr")

INPUTS = (
    # groups of pictures and reordering, in MP4
    Input("mp4 gop 1", h264(1, 0)),
    Input("mp4 gop 12 without b-frames", h264(12, 0), fps=24),
    Input("mp4 gop 25 with one b-frame", h264(25, 1)),
    Input("mp4 gop 25 with two b-frames", h264(25, 2)),
    Input("mp4 gop 30 with a pyramid of three", h264(30, 3), fps=30),
    Input("mp4 gop 30 with flat b-frames", h264(30, 3, "-x264-params", "b-pyramid=none"), fps=30),
    Input("mp4 gop 30 with strict pyramid", h264(30, 3, "-x264-params", "b-pyramid=strict"), fps=30),
    Input("mp4 gop 30 with seven b-frames", h264(30, 7, "-b_strategy", "0"), fps=30),
    Input("mp4 gop 50 from a keyframe", h264(50, 2), start=2.0, end=3.9),
    Input("mp4 gop 40 to a keyframe", h264(40, 2), start=0.5, end=3.2),
    Input("mp4 gop 250", h264(250, 2), fallback="no group of pictures"),
    Input("mp4 from the start", h264(25, 2), start=0.0, end=2.5),
    Input("mp4 to the end", h264(25, 2), start=1.3, end=4.0),
    Input("mp4 all of it", h264(25, 3), start=0.0, end=4.0),
    Input("mp4 between frames", h264(25, 2), start=0.713, end=3.287),
    Input("mp4 one group", h264(25, 2), start=1.0, end=2.0),
    Input("mp4 keyframes where scenes change", h264(40, 2, "-force_key_frames", "0.44,1.32,2.6")),
    # profiles and what the sets tell
    Input("mp4 baseline", h264(25, 0, "-profile:v", "baseline")),
    Input("mp4 main", h264(25, 2, "-profile:v", "main")),
    Input("mp4 one reference frame", h264(25, 2, "-refs", "1")),
    Input("mp4 six reference frames", h264(25, 3, "-refs", "6")),
    Input("mp4 several slices", h264(25, 2, "-slices", "4")),
    Input("mp4 sets with another id", h264(25, 2, "-x264-params", "sps-id=1")),
    Input("mp4 full range and bt709", h264(25, 2, "-color_range", "pc", "-colorspace", "bt709")),
    Input("mp4 with delimiters", h264(25, 2, "-aud", "1")),
    Input("mp4 ten bits", h264(25, 2, "-pix_fmt", "yuv420p10le")),
    Input("mp4 interlaced", h264(25, 2, "-flags", "+ildct+ilme"), fallback="interlaced"),
    # frame rates
    Input("mp4 film", h264(24, 2), fps=FILM),
    Input("mp4 ntsc", h264(30, 2), fps=NTSC),
    Input("mp4 60 fps", h264(60, 3), fps=60),
    Input("mp4 variable frame rate", h264(12, 2), fps=30, more=KEEP_SOME),
    Input("mp4 still at the start", h264(12, 2), more=STILL, start=1.2),
    # sound and timelines
    Input("mp4 without sound", audio=SILENT, has_audio=False),
    Input("mp4 two audio tracks", audio=AAC, more=TWO_TRACKS),
    Input("mp4 44.1 kHz stereo", audio=(*AAC, "-ar", "44100", "-ac", "2")),
    Input("mp4 16 kHz", audio=(*AAC, "-ar", "16000")),
    Input("mp4 mp3", audio=("-c:a", "libmp3lame")),
    Input("mp4 late video", more=late("video", "0.5")),
    Input("mp4 late audio", more=late("audio", "1.2")),
    Input("mp4 turned", before=("-display_rotation:v:0", "90"), video=("-c:v", "copy"), quarter_turns=-1),
    Input("mp4 index last", more=("-movflags", "0")),
    Input("mp4 fragmented", more=("-movflags", "+frag_keyframe+empty_moov")),
    # containers
    Input("mov", container="mov"),
    Input("mkv", container="mkv", fps=30),
    Input("mkv ntsc pyramid", h264(30, 3), container="mkv", fps=NTSC),
    Input("mkv opus", audio=("-c:a", "libopus"), container="mkv"),
    Input("mkv flac", audio=("-c:a", "flac"), container="mkv"),
    Input("mkv late video", container="mkv", more=late("video", "0.4")),
    Input("ts", container="ts", fps=30),
    Input("ts pyramid", h264(25, 3), container="ts"),
    Input("ts baseline", h264(25, 0, "-profile:v", "baseline"), container="ts"),
    Input("ts ac3", audio=("-c:a", "ac3"), container="ts"),
    Input("ts without sound", audio=SILENT, container="ts", has_audio=False),
    Input("ts ntsc", h264(30, 2), container="ts", fps=NTSC),
    # other codecs
    Input("hevc mp4", x265(25)),
    Input("hevc open gop mkv", x265(25, "open-gop=1"), container="mkv", fps=30),
    Input("vp9 webm", vp9(25), OPUS, "webm"),
    Input("av1 mp4", ("-c:v", "libsvtav1", "-preset", "12", "-g", "25", "-svtav1-params", "lp=1"), fallback="av1"),
    Input("mpeg4 avi", ("-c:v", "mpeg4", "-q:v", "3", "-g", "25"), ("-c:a", "libmp3lame"), "avi", fallback="mpeg4"),
)  # fmt: skip

#: ways of coding that only matter where packets are copied
SMART_INPUTS = (
    # groups that refer to the one before them
    Input("mp4 open gop", h264(25, 2, "-x264-params", "open-gop=1")),
    Input("mp4 open gop one b-frame", open_h264(25, 1)),
    Input("mp4 open gop pyramid", open_h264(25, 3)),
    Input("mp4 open gop strict pyramid", open_h264(25, 3, "b-pyramid=strict")),
    Input("mp4 open gop flat", open_h264(25, 3, "b-pyramid=none"), fps=30),
    Input("mp4 open gop six references", open_h264(25, 3, "ref=6")),
    Input("mp4 open gop of five", open_h264(5, 2, "ref=5")),
    Input("mp4 open gop from a keyframe", open_h264(25, 3), start=1.0, end=3.0),
    Input("mp4 open gop from a leading frame", open_h264(25, 3), start=0.92, end=3.3),
    Input("mp4 open gop to a leading frame", open_h264(25, 3), start=0.5, end=2.94),
    Input("mp4 open gop without arithmetic codes", open_h264(25, 2, "cabac=0")),
    Input("mp4 open gop several slices", open_h264(25, 2, "slices=3")),
    Input("mp4 open gop weighted", open_h264(25, 2, "weightp=2:weightb=1"), more=FADING),
    Input("mp4 open gop temporal direct", open_h264(25, 3, "direct=temporal")),
    Input("mp4 open gop ten bits", (*open_h264(25, 3), "-pix_fmt", "yuv420p10le")),
    Input("mp4 open gop and idr", open_h264(25, 2), more=("-force_key_frames", "1.8")),
    Input("mkv open gop", open_h264(25, 3), container="mkv", fps=NTSC),
    Input("ts open gop", open_h264(25, 3), container="ts"),
    # other formats
    Input("mp4 ten bits 4:2:2", h264(25, 2, "-pix_fmt", "yuv422p10le")),
    Input("mp4 4:2:2", h264(25, 2, "-pix_fmt", "yuv422p")),
    Input("mp4 4:4:4", h264(25, 2, "-pix_fmt", "yuv444p"), fallback="profile 244"),
    # hevc
    Input("hevc mp4 without b-frames", x265(25, "bframes=0")),
    Input("hevc mp4 flat b-frames", x265(25, "b-pyramid=0")),
    Input("hevc mp4 deep", x265(25, "bframes=8:b-adapt=0:rc-lookahead=15"), fps=30),
    Input("hevc mp4 keyframes with leading frames", x265(25, "radl=2")),
    Input("hevc mp4 ten bits", x265(25), more=TEN_BITS),
    Input("hevc mp4 hev1", (*x265(25), "-tag:v", "hev1")),
    Input("hevc mp4 hdr", x265(25, HDR), more=TEN_BITS),
    Input("hevc mkv", x265(30), container="mkv", fps=NTSC),
    Input("hevc ts", x265(25), container="ts"),
    Input("hevc open gop mp4", x265(25, "open-gop=1")),
    Input("hevc open gop mp4 to a leading frame", x265(25, "open-gop=1:bframes=4:b-adapt=0"), end=1.94),
    Input("hevc open gop mp4 from a leading frame", x265(25, "open-gop=1:bframes=4:b-adapt=0"), start=0.94),
    Input("hevc open gop mp4 from a keyframe", x265(25, "open-gop=1"), start=1.0),
    Input("hevc open gop mp4 ten bits", x265(25, "open-gop=1"), more=TEN_BITS),
    Input("hevc open gop ts", x265(25, "open-gop=1"), container="ts"),
    Input("hevc 4:2:2", x265(25), more=("-pix_fmt", "yuv422p10le"), fallback="hevc profile 4"),
    # vp9
    Input("vp9 webm hidden frames", vp9(25, "-deadline", "good"), OPUS, "webm", is_two_pass=True),
    Input("vp9 mp4", vp9(25)),
    Input("vp9 mkv without sound", vp9(12), SILENT, "mkv", has_audio=False),
    Input("vp9 ten bits", vp9(25), OPUS, "webm", more=TEN_BITS, fallback="vp9"),
)  # fmt: skip
