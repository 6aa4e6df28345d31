"""The job spec: strict, and every problem told at once."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.domain.media import CaptionWish, Mode, Quality, TranscriptWish
from worker.domain.request import Sprite, parse_request, parse_seconds
from worker.errors import InvalidRequest


def test_defaults() -> None:
    request = parse_request({"source": "https://example.org/talk.mp4"})
    assert (request.start, request.end, request.mode) == (None, None, Mode.SMART)
    assert (request.quality, request.renditions, request.loudness) == (Quality.GOOD, (), None)
    assert (request.sprite, request.waveform, request.hide_lead) == (None, False, False)
    assert (request.transcript, request.captions) == (TranscriptWish.REQUIRED, None)
    assert (request.poster, request.max_height, request.metadata) == (True, None, None)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("61.5", 61.5),
        ("1:01.5", 61.5),
        ("00:01:01.500", 61.5),
        ("10:00:00", 36000.0),
        (92, 92.0),
        (0, 0.0),
        ("75", 75.0),
    ],
)
def test_times_as_numbers_or_clock(text: object, seconds: float) -> None:
    assert parse_request({"source": "x", "end": 40000, "start": text}).start == seconds


@pytest.mark.parametrize(
    "bad", [-1, "x", "1:99", True, None.__class__, [], "1:2:3:4", float("nan"), float("inf"), 1e12]
)
def test_times_that_are_none(bad: object) -> None:
    with pytest.raises(InvalidRequest, match="start"):
        parse_request({"source": "x", "start": bad})


def test_all_problems_are_listed_at_once() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_request({"start": "soon", "mode": "fast", "transcript": "yes", "max_height": 1, "colour": "red"})
    assert "end must be after start" not in str(caught.value)
    for name in ("source: is required", "start:", "mode:", "transcript:", "max_height:", "colour: unknown key"):
        assert name in str(caught.value)


def test_the_range_is_judged_beside_the_fields() -> None:
    with pytest.raises(InvalidRequest, match="colour: unknown key; end must be after start"):
        parse_request({"source": "x", "start": 5, "end": 4, "colour": "red"})


@pytest.mark.parametrize(("start", "end"), [(5, 5), (5, 4), (None, 0)])
def test_end_must_come_after_start(start: float | None, end: float) -> None:
    with pytest.raises(InvalidRequest, match="end must be after start"):
        parse_request({"source": "x", "start": start, "end": end})


@pytest.mark.parametrize("spec", [None, [], "text", 5, True])
def test_anything_but_an_object_is_refused(spec: object) -> None:
    with pytest.raises(InvalidRequest, match="must be a JSON object"):
        parse_request(spec)


def test_huge_spec_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="at most 65,536"):
        parse_request({"source": "x", "metadata": {"note": "y" * 70_000}})


@pytest.mark.parametrize(
    ("key", "given", "meant"),
    [
        ("quality", "best", Quality.BEST),
        ("renditions", [720, 360], (720, 360)),
        ("loudness", -16, -16.0),
        ("poster", False, False),
        ("poster", 3, 3.0),
        ("poster", "0:03.5", 3.5),
        ("sprite", True, Sprite()),
        ("sprite", False, None),
        ("sprite", {"columns": 5, "every": 2}, Sprite(columns=5, every=2.0)),
        ("waveform", True, True),
    ],
)
def test_what_is_made_beside_the_cut(key: str, given: object, meant: object) -> None:
    assert getattr(parse_request({"source": "x", key: given}), key) == meant


@pytest.mark.parametrize(
    ("key", "bad", "complaint"),
    [
        ("quality", "huge", "'small', 'good' or 'best'"),
        ("renditions", 720, "a list of heights"),
        ("renditions", [720, 720], "twice"),
        ("renditions", [721], "even"),
        ("renditions", ["720"], "valid integer"),
        ("renditions", [8], "greater than or equal to 16"),
        ("renditions", [100, 102, 104, 106, 108, 110, 112], "at most 6"),
        ("loudness", -4, "less than or equal to -5"),
        ("loudness", -71, "greater than or equal to -70"),
        ("loudness", "-16", "valid number"),
        ("poster", "soon", "a time in the clip"),
        ("poster", None, "a time in the clip"),
        ("sprite", 5, "an object"),
        ("sprite", {"columns": 0}, "greater than or equal to 1"),
        ("sprite", {"every": "2"}, "valid number"),
        ("sprite", {"rows": 2}, "unknown key"),
        ("waveform", "yes", "valid boolean"),
        ("hide_lead", True, "only mode copy"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(key: str, bad: object, complaint: str) -> None:
    with pytest.raises(InvalidRequest, match=f"{key}.*{complaint}"):
        parse_request({"source": "x", key: bad})


def test_copy_has_a_lead_to_hide_and_no_sound_to_change() -> None:
    assert parse_request({"source": "x", "mode": "copy", "hide_lead": True}).hide_lead
    with pytest.raises(InvalidRequest, match="loudness: mode copy changes no sound"):
        parse_request({"source": "x", "mode": "copy", "loudness": -16})


@pytest.mark.parametrize("prefix", ["../up", "/abs", "a//b", "a/../b", "späß", "a b", ""])
def test_key_prefix_cannot_leave_its_place(prefix: str) -> None:
    with pytest.raises(InvalidRequest, match="key_prefix"):
        parse_request({"source": "x", "key_prefix": prefix})


def test_fingerprint_follows_what_shapes_the_artifacts_only() -> None:
    base = {"source": "x", "start": 1, "end": 2}
    same = parse_request({**base, "start": "0:01", "metadata": {"a": 1}, "key_prefix": "p"})
    other = parse_request({**base, "end": 3})
    assert parse_request(base).fingerprint == same.fingerprint != other.fingerprint
    for wish in ({"quality": "best"}, {"renditions": [90]}, {"loudness": -16}, {"sprite": True}, {"poster": 0.5}):
        assert parse_request({**base, **wish}).fingerprint != same.fingerprint


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_no_spec_ever_raises_anything_else(spec: object) -> None:
    with suppress(InvalidRequest):
        parse_request(spec)


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59_999))
def test_clock_and_seconds_agree(hours: int, minutes: int, ms: int) -> None:
    clock = f"{hours}:{minutes:02}:{ms // 1000:02}.{ms % 1000:03}"
    assert parse_seconds(clock) == pytest.approx(hours * 3600 + minutes * 60 + ms / 1000)


@pytest.mark.parametrize(
    ("told", "wish"),
    [
        (True, TranscriptWish.REQUIRED),
        (False, TranscriptWish.NONE),
        ("required", TranscriptWish.REQUIRED),
        ("best-effort", TranscriptWish.BEST_EFFORT),
    ],
)
def test_transcript_is_wanted_in_three_ways(told: object, wish: TranscriptWish) -> None:
    assert parse_request({"source": "s", "transcript": told}).transcript is wish


@pytest.mark.parametrize("told", ["none", "yes", 1, None, []])
def test_other_ways_to_want_a_transcript_are_told_the_right_ones(told: object) -> None:
    with pytest.raises(InvalidRequest, match='must be true, false, "best-effort" or "required"'):
        parse_request({"source": "s", "transcript": told})


def test_captions_need_a_transcript() -> None:
    assert parse_request({"source": "s", "captions": "burn"}).captions is CaptionWish.BURN
    with pytest.raises(InvalidRequest, match="captions: there is nothing to show without a transcript"):
        parse_request({"source": "s", "captions": "track", "transcript": False})
    with pytest.raises(InvalidRequest, match="captions: "):
        parse_request({"source": "s", "captions": "loud"})
