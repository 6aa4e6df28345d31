"""Captions as libass draws them: a script with one style, made for one picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from worker.domain.caption_lines import LINE_COLUMNS
from worker.domain.captions import WORD_JOINER, Cue

FONT: Final = "Open Sans"
#: of the shorter side: readable on a phone, and out of the way on a screen
FONT_SHARE: Final = 0.058
SMALLEST_FONT: Final = 10
#: of an average letter of this font, in heights of its line
LETTER_SHARE: Final = 0.43
#: what televisions and players' own controls may cover
SIDE_SHARE: Final = 0.05
BOTTOM_SHARE: Final = 0.06

_STYLE: Final = (
    "Name, Fontname, Fontsize, PrimaryColour, OutlineColour, BackColour, Bold, BorderStyle, Outline, Shadow, "
    "Alignment, MarginL, MarginR, MarginV, Encoding"
)
_EVENT: Final = "Layer, Start, End, Style, MarginL, MarginR, MarginV, Text"


@dataclass(frozen=True, slots=True)
class Layout:
    """How captions fit a picture; all in its pixels."""

    width: int
    height: int

    @property
    def font_pixels(self) -> int:
        return max(SMALLEST_FONT, round(min(self.width, self.height) * FONT_SHARE))

    @property
    def side_pixels(self) -> int:
        return round(self.width * SIDE_SHARE)

    @property
    def line_columns(self) -> float:
        """How many columns fit into a line of a narrow picture."""
        return max(8.0, min(LINE_COLUMNS, (self.width - 2 * self.side_pixels) / (self.font_pixels * LETTER_SHARE)))


def to_ass(cues: Sequence[Cue], layout: Layout) -> str:
    style = (
        f"Caption,{FONT},{layout.font_pixels},&H00FFFFFF,&H30000000,&H60000000,0,1,"
        f"{max(1.0, layout.font_pixels / 14):.1f},{layout.font_pixels / 28:.1f},2,"
        f"{layout.side_pixels},{layout.side_pixels},{round(layout.height * BOTTOM_SHARE)},1"
    )
    head = [
        "[Script Info]",
        "ScriptType: v4.00+",
        f"PlayResX: {layout.width}",
        f"PlayResY: {layout.height}",
        "ScaledBorderAndShadow: yes",
        # lines are broken already; what is too wide all the same is broken evenly
        "WrapStyle: 0",
        "",
        "[V4+ Styles]",
        f"Format: {_STYLE}",
        f"Style: {style}",
        "",
        "[Events]",
        f"Format: {_EVENT}",
    ]
    events = [
        f"Dialogue: 0,{_clock(cue.start_seconds)},{_clock(cue.end_seconds)},Caption,0,0,0,"
        + r"\N".join(_plain(line) for line in cue.lines)
        for cue in cues
    ]
    return "\n".join([*head, *events]) + "\n"


def _plain(line: str) -> str:
    """Words are never commands: a backslash stands alone, and a brace opens nothing."""
    return line.replace("\\", f"\\{WORD_JOINER}").replace("{", r"\{").replace("\n", " ")


def _clock(seconds: float) -> str:
    hundredths = round(seconds * 100)
    return f"{hundredths // 360_000}:{hundredths // 6000 % 60:02}:{hundredths // 100 % 60:02}.{hundredths % 100:02}"
