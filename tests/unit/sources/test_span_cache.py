"""Bytes kept in memory."""

from worker.sources.spans import SpanCache

FILM = bytes(range(200))


def test_known_bytes_come_back_from_any_position_of_their_span() -> None:
    cache = SpanCache()
    cache.put("a", 10, FILM[10:20])
    assert [cache.get("a", at) for at in (9, 10, 15, 20)] == [b"", FILM[10:20], FILM[15:20], b""]
    assert (cache.gap_end("a", 0), cache.gap_end("a", 20)) == (10, None)


def test_sources_are_kept_apart() -> None:
    cache = SpanCache()
    cache.put("a", 0, b"one")
    assert cache.get("b", 0) == b""
    cache.forget("a")
    assert cache.get("a", 0) == b""


def test_what_overlaps_fills_the_gap_only() -> None:
    cache = SpanCache()
    cache.put("a", 10, FILM[10:20])
    cache.put("a", 30, FILM[30:40])
    cache.put("a", 15, FILM[15:35])
    assert cache.get("a", 20) == FILM[20:30]
    assert cache.get("a", 30) == FILM[30:40]


def test_what_was_not_asked_for_the_longest_goes_first() -> None:
    cache = SpanCache(max_bytes=3000)
    for name in ("a", "b"):
        cache.put(name, 0, bytes(1000))
    assert cache.get("a", 0)
    cache.put("c", 0, bytes(1000))
    assert [bool(cache.get(name, 0)) for name in ("a", "b", "c")] == [True, False, True]


def test_many_crumbs_do_not_outgrow_the_bound() -> None:
    cache = SpanCache(max_bytes=10_000)
    for position in range(0, 10_000, 2):
        cache.put("a", position, b"x")
    assert sum(bool(cache.get("a", position)) for position in range(0, 10_000, 2)) < 50


def test_cache_of_no_size_keeps_nothing() -> None:
    cache = SpanCache(0)
    cache.put("a", 0, b"x")
    assert cache.get("a", 0) == b""
