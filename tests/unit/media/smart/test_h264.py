import pytest

from tests.unit.media.smart.coded import encoded
from worker.media.smart.bits import escaped
from worker.media.smart.h264_sets import ParameterSets, read_pps, read_sps
from worker.media.smart.h264_slices import SliceReader
from worker.media.smart.h264_start import IDR_SLICE, SLICE, Memory, RenumberingCopier
from worker.media.smart.order import Unfit
from worker.media.smart.units import by_start_code, joined, units_of

OPEN = "open-gop=1:keyint=10:min-keyint=10:scenecut=0:b-adapt=0"


@pytest.fixture(scope="module", params=["cabac=1", "cabac=0:slices=3", "weightp=2:ref=5", "b-pyramid=strict"])
def stream(request):
    encoder, packets = encoded("libx264", {"preset": "veryfast", "x264-params": f"{OPEN}:{request.param}"})
    sets = ParameterSets.among(by_start_code(bytes(encoder.extradata)))
    sps = read_sps(sets.sps[0])
    reader = SliceReader(sps, {pps.set_id: pps for pps in map(read_pps, sets.pps)})
    return sps, reader, [list(by_start_code(packet)) for packet in packets]


def test_a_slice_written_with_its_own_numbers_is_the_same_to_the_last_bit(stream):
    sps, reader, packets = stream
    slices = [unit for packet in packets for unit in packet if unit[0] & 31 == SLICE]
    assert len(slices) >= 29
    for unit in slices:
        read = reader.read(unit)
        assert escaped(read.written(read.numbers, sps, is_idr=False)) == unit[1:]


def test_from_a_recovery_point_on_numbers_start_anew_and_rise_by_one_behind_each_reference(stream):
    sps, reader, packets = stream
    numbered = [(packet, next(unit for unit in packet if unit[0] & 31 in {SLICE, IDR_SLICE})) for packet in packets]
    starts = [at for at, (_, unit) in enumerate(numbered) if unit[0] & 31 == SLICE and reader.read(unit).kind == 2]
    first = reader.read(numbered[starts[0]][1]).numbers.order
    copier = RenumberingCopier(sps, reader, 4)
    expected, orders = 0, list[int]()
    for packet, unit in numbered[starts[0] : starts[1]]:
        order = (reader.read(unit).numbers.order - first) % (1 << sps.order_bits)
        if order >= 1 << sps.order_bits - 1:
            # shown before the start: not copied
            continue
        copied = units_of(copier.copy(joined(packet, 4)), 4)
        slices = [one for one in copied if one[0] & 31 in {SLICE, IDR_SLICE}]
        if not orders:
            assert {one[0] & 31 for one in slices} == {IDR_SLICE}
        else:
            numbers = reader.read(slices[0]).numbers
            assert (numbers.number, numbers.order) == (expected % (1 << sps.frame_number_bits), order)
        expected += bool(slices[0][0] & 0x60)
        orders.append(order)
    assert orders[0] == 0
    assert copier.is_settled


def test_a_recovery_point_that_is_predicted_is_refused(stream):
    sps, reader, packets = stream
    predicted = next(packet for packet in packets[1:] if reader.read(packet[-1]).kind == 0)
    with pytest.raises(Unfit, match="predicted"):
        RenumberingCopier(sps, reader, 4).copy(joined(predicted, 4))


def test_references_leave_by_age_unless_they_are_named():
    memory = Memory(3, 2)
    for number in (7, 8):
        memory.add(number, None)
    assert memory.held == [-1, 7, 8]
    memory.add(9, [7, 5])
    assert memory.held == [8, 9]
