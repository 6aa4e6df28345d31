from fractions import Fraction
from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from worker.domain.media import ClipRange
from worker.media.expectation import expect_page
from worker.media.timeline import TICKS_PER_SECOND, first_tick, page_times, past_last_tick, start_tick

RATES = st.sampled_from([None, 23.976, 25.0, 29.97, 30.0, 59.94, 60.0])
#: pages last longer than people's milliseconds are off
LENGTHS = st.lists(st.floats(0.01, 4_000), min_size=1, max_size=12)
MOMENTS = st.builds(lambda start, lengths: list(accumulate(lengths, initial=start)), st.floats(0, 40_000), LENGTHS)


@given(MOMENTS, RATES, st.integers(0, 5_000_000))
def test_each_frame_of_the_clip_lies_in_one_page_and_where_the_whole_clip_has_it(moments, fps, tick):
    clip = ClipRange(moments[0], moments[-1])
    tick += first_tick(clip.start_seconds, fps)
    homes = []
    for ends in pairwise(moments):
        times = page_times(clip, ClipRange(*ends), fps)
        # as the filters choose and time it
        if first_tick(ends[0], fps) <= tick < times.past_tick:
            homes.append(max(tick - times.zero_tick, 0) + times.zero_in_clip)
    is_inside = tick < past_last_tick(clip.end_seconds, fps)
    assert homes == [max(tick - start_tick(clip.start_seconds), 0)] * is_inside


@given(MOMENTS, RATES)
def test_pictures_last_no_longer_than_the_clip(moments, fps):
    clip = ClipRange(moments[0], moments[-1])
    for ends in pairwise(moments):
        times = page_times(clip, ClipRange(*ends), fps)
        assert times.zero_in_clip + times.lasting_ticks == start_tick(clip.duration_seconds)
        assert start_tick(times.lasting_seconds) == times.lasting_ticks


def test_page_expects_its_own_frames_and_no_sound():
    expected = expect_page(page_times(ClipRange(10.0, 60.0), ClipRange(20.0, 30.0), 25.0))
    assert (expected.has_video, expected.has_audio, expected.shortest_seconds) == (True, False, 0.0)
    assert expected.frames_before_seconds == 10.0
    assert expected.longest_seconds == float(Fraction(40 * TICKS_PER_SECOND + 120, TICKS_PER_SECOND)) + 0.05
