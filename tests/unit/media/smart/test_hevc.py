import pytest

from tests.unit.media.smart.coded import encoded
from worker.media.smart.bits import Bits, plain
from worker.media.smart.hevc import CutOffCopier
from worker.media.smart.hevc_sets import SPS, Ids, ParameterSets, kind_of, read_record, read_sps
from worker.media.smart.order import Unfit
from worker.media.smart.units import by_start_code, joined, units_of

X265 = {
    "preset": "ultrafast",
    "x265-params": "log-level=none:keyint=10:min-keyint=10:open-gop=1:pools=1:frame-threads=1",
}
CLEAN_RANDOM_ACCESS, BROKEN_LINK = 21, 18


@pytest.fixture(scope="module")
def stream():
    encoder, packets = encoded("libx265", X265)
    return ParameterSets.among(by_start_code(bytes(encoder.extradata))), packets


def test_numbered_sets_differ_in_nothing_but_their_ids(stream):
    sets, _ = stream
    ids = sets.free_ids()
    assert (ids.vps, ids.sps) == (1, 1)
    other = sets.numbered(ids)
    assert [unit[2] >> 4 for unit in (*other.vps, *other.sps)] == [1, 1]
    assert read_sps(other.sps[0]).set_id == 1
    bits = Bits(plain(other.pps[0][2:]))
    assert (bits.unsigned(), bits.unsigned()) == (ids.pps, 1)
    with pytest.raises(Unfit, match="unknown way"):
        other.numbered(Ids(2, 2, 16))


def test_the_record_holds_all_sets(stream):
    sets, _ = stream
    both = sets.joined(sets.numbered(sets.free_ids()))
    length_bytes, units = read_record(both.record(4, b""))
    assert length_bytes == 4
    assert ParameterSets.among(units) == both
    assert [kind_of(unit) for unit in units].count(SPS) == 2


def test_copying_from_the_middle_says_that_a_link_is_broken_there_and_only_there(stream):
    _, packets = stream
    starts = [
        joined(units, 4)
        for units in (list(by_start_code(packet)) for packet in packets)
        if any(kind_of(unit) == CLEAN_RANDOM_ACCESS for unit in units)
    ]
    copier = CutOffCopier(4)
    first, second = (copier.copy(packet) for packet in starts[:2])
    assert BROKEN_LINK in {kind_of(unit) for unit in units_of(first, 4)}
    assert first[-100:] == starts[0][-100:]
    assert second == starts[1]


def test_a_damaged_set_is_refused(stream):
    sets, _ = stream
    with pytest.raises(Unfit, match="damaged"):
        read_sps(sets.sps[0][:16])
