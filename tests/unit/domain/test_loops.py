"""Repetitions that nobody can have said."""

import pytest

from worker.domain.loops import without_loop


@pytest.mark.parametrize(
    ("text", "seconds", "left"),
    [
        ("fail again fail better", 0.5, "fail again fail better"),
        ("Do you hear me? Yes. Do you hear me? Yes.", 4.3, "Do you hear me? Yes. Do you hear me? Yes."),
        ("Thank you. " * 20, 2.0, "Thank you. Thank you. Thank you. Thank you."),
        ("and so it ends and so it ends, And so it ends", 0.8, "and so it ends"),
        ("no no no no no no", 0.1, "no"),
        ("", 1.0, ""),
        ("hello", 0.0, "hello"),
    ],
)
def test_only_what_does_not_fit_into_the_time_goes(text: str, seconds: float, left: str) -> None:
    assert without_loop(text, seconds=seconds) == left
