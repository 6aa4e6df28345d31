"""A sprite: small pictures of a clip on one sheet, and the WebVTT file that tells which belongs to which time."""

from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from worker.domain.media import ClipFile
from worker.domain.request import Sprite
from worker.errors import InvalidRequest

#: the longer side of each small picture
TILE_PIXELS: Final = 160
#: what is chosen when nobody says: enough to find a scene, few enough to load at once
USUAL_TILES: Final = 100
FEWEST_TILES: Final = 10
MAX_TILES: Final = 1000


@dataclass(frozen=True, slots=True)
class Sheet:
    """Picture number n, counted in rows from the top left, is what the clip shows at n x `every_ms`."""

    every_ms: int
    duration_ms: int
    columns: int
    tile_width: int
    tile_height: int
    #: keyframes are close enough together; the frames between them need not be decoded
    by_keyframes: bool

    @property
    def tiles(self) -> int:
        return max(1, ceil(self.duration_ms / self.every_ms))

    @property
    def rows(self) -> int:
        return ceil(self.tiles / self.columns)

    @property
    def size(self) -> tuple[int, int]:
        return self.columns * self.tile_width, self.rows * self.tile_height

    def thumbnails(self, picture: str) -> str:
        """WebVTT; `picture` is the sheet's name beside it."""
        cues = ["WEBVTT", ""]
        for number in range(self.tiles):
            row, column = divmod(number, self.columns)
            begin, end = number * self.every_ms, min((number + 1) * self.every_ms, self.duration_ms)
            place = (column * self.tile_width, row * self.tile_height, self.tile_width, self.tile_height)
            cues += [f"{_clock(begin)} --> {_clock(end)}", f"{picture}#xywh={','.join(map(str, place))}", ""]
        return "\n".join(cues)


def plan_sheet(clip: ClipFile, wish: Sprite) -> Sheet:
    duration, gap = clip.duration_seconds, clip.keyframe_gap_seconds
    # to follow the keyframes spares decoding all that lies between them
    usual = max(1.0, duration / USUAL_TILES, min(gap, duration / FEWEST_TILES))
    every = usual if wish.every is None else wish.every
    refuse_too_many(wish, duration)
    scale = min(1.0, TILE_PIXELS / max(clip.width, clip.height))
    sheet = Sheet(
        every_ms=round(every * 1000),
        duration_ms=max(1, round(duration * 1000)),
        columns=wish.columns,
        tile_width=_even(clip.width * scale),
        tile_height=_even(clip.height * scale),
        by_keyframes=0 < gap <= every + 0.001,
    )
    # a sheet that is not full needs no empty columns
    return replace(sheet, columns=min(wish.columns, sheet.tiles))


def refuse_too_many(wish: Sprite, duration_seconds: float) -> None:
    if wish.every is not None and duration_seconds / wish.every > MAX_TILES:
        raise InvalidRequest(
            f"sprite.every: {wish.every:g} s makes {ceil(duration_seconds / wish.every)} pictures of a clip of "
            f"{duration_seconds:.0f} s; at most {MAX_TILES} fit"
        )


def _even(pixels: float) -> int:
    return max(2, round(pixels / 2) * 2)


def _clock(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:03}"
