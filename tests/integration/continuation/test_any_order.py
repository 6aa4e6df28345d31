"""Random histories of pages that come twice, too early, never, or whose worker dies: every job ends once, and whole."""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.integration.continuation.any_order import ACTS, Crew
from tests.integration.continuation.races import Ring
from worker.domain.paging import Chain, PageKind, chains_of

SETTINGS = settings(
    max_examples=70,
    # making a failure smaller takes minutes here, and then nobody hears of it
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
#: of these a run must have seen some, or it has proved nothing
MUST_BE_SEEN = (
    "page done",
    "page not its turn",
    "page done by two",
    "page done too early",
    "page lost",
    "page sent again",
    "page requeued",
    "zombie refused",
    "job snoozed",
    "job requeued",
)
#: chance seldom brings this about: the page after next is taken beside the first one, and done before it
TOO_EARLY = [
    (Crew.send_a_page_again, 2),
    (Crew.take_a_page, 0),
    (Crew.take_a_page, 0),
    (Crew.finish_whatever_others_did, 1),
]
histories = st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 30)), min_size=15, max_size=60)


@pytest.mark.timeout(240)
def test_any_history_of_pages_ends_in_one_whole_clip(ring: Ring) -> None:
    seen: Counter[str] = Counter()

    @SETTINGS
    @given(st.integers(2, 5), st.integers(1, 3), st.booleans(), histories)
    @example(5, 1, False, TOO_EARLY)
    def holds(
        pages: int, partitions: int, is_heard: bool, history: list[tuple[Callable[[Crew, int], None], int]]
    ) -> None:
        chains = [Chain(PageKind.SOUND, 0, 1)] if is_heard else []
        chains += chains_of(PageKind.PICTURES, pages, partitions=partitions, heights=(0,))
        crew = Crew(ring, seen, chains)
        for act, number in history:
            act(crew, number)
            crew.check()
        crew.bring_to_an_end()

    holds()
    assert [what for what in MUST_BE_SEEN if not seen[what]] == []
