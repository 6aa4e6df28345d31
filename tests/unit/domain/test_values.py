"""Small pure values: progress, storable text, outputs."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.domain.job import StageName
from worker.domain.progress import WEIGHTS, overall
from worker.domain.text import as_output, storable


def test_weights_are_whole_and_in_stage_order() -> None:
    assert list(WEIGHTS) == list(StageName)
    assert sum(WEIGHTS.values()) == pytest.approx(1.0)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=5).map(sorted))
def test_progress_never_goes_back(fractions: list[float]) -> None:
    seen = [overall(stage, fraction) for stage in StageName for fraction in fractions]
    assert seen == sorted(seen)
    assert 0 <= seen[0] <= seen[-1] <= 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec=None)), inner),
    max_leaves=10,
)


@given(JSON)
def test_storable_values_are_strict_json_in_utf8_without_nul(value: object) -> None:
    text = json.dumps(storable(value), allow_nan=False, ensure_ascii=False)
    assert "\\u0000" not in text
    text.encode()


@pytest.mark.parametrize(
    ("output", "stored"),
    [(None, None), ({"a": 1}, {"a": 1}), ([1], {"value": [1]}), ("x", {"value": "x"}), (0, {"value": 0})],
)
def test_output_wraps_all_but_objects(output: object, stored: object) -> None:
    assert as_output(output) == stored
