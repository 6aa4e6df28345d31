"""Two operations on one job, statement by statement in every order: the outcome is that of one after the other."""

import itertools
from collections.abc import Iterator

import pytest

from tests.integration.leases.ground import Ground, open_ground
from tests.integration.leases.situations import (
    ENDINGS,
    LEASED,
    OPERATIONS,
    PASSING,
    SITUATIONS,
    Arena,
    open_arena,
)


@pytest.fixture(scope="module")
def ground(server_dsn: str, template_database: str) -> Iterator[Ground]:
    with open_ground(server_dsn, template_database) as ground:
        yield ground


@pytest.fixture(scope="module")
def arena(ground: Ground) -> Iterator[Arena]:
    with open_arena(ground) as arena:
        yield arena


@pytest.mark.timeout(120)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_interleaving_of_two_operations_equals_one_of_their_serial_orders(arena: Arena, situation: str) -> None:
    found = [surprise for names in pairs(situation) for surprise in surprises(arena, situation, names)]
    assert not found, "\n".join(found)


def pairs(situation: str) -> Iterator[tuple[str, str]]:
    names = [name for name in OPERATIONS if situation != "queued" or name not in LEASED]
    if situation == "taken over":
        # The left side is the zombie here: who does what matters.
        return itertools.product(names, repeat=2)
    return itertools.combinations_with_replacement(names, 2)


def surprises(arena: Arena, situation: str, names: tuple[str, str]) -> list[str]:
    """What came out and must not, of all the orders there are."""
    scene = arena.set(situation)
    outcomes = dict(arena.outcomes(scene, names))
    allowed = [found for order, found in outcomes.items() if list(order) in (sorted(order), sorted(order)[::-1])]
    assert len(allowed) == 2, f"{names}: not both serial orders were played"
    # Who passes over a locked row has done nothing, which the next tick makes up for.
    allowed += [arena.alone(scene, names, at) for at in (0, 1) if names[1 - at] in PASSING]
    return [
        f"{situation}, {names} in order {order}: {why}: {found}"
        for order, found in outcomes.items()
        for why in (*forbidden(situation, names, dict(found)["answers"]), *["no serial order"][found in allowed :])
    ]


def forbidden(situation: str, names: tuple[str, str], answers: tuple[object, object]) -> Iterator[str]:
    """Wrong in any order, the serial ones too: without fences those let zombies through as well."""
    if situation == "taken over" and names[0] in LEASED and answers[0] not in {"lease lost", "lost", "cancelled"}:
        yield "the zombie's write went through"
    if set(names) <= ENDINGS and answers.count(None) > 1:
        yield "the attempt ended twice"
