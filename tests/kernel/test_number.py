"""Facts about sizes: looked at one by one at first, then by a function written for them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tenfold.kernel.ir.number import _ONE_BY_ONE, Facts, prefers_less

SIZES = st.lists(st.integers(0, 40), min_size=3, max_size=3)


def made_for(sizes: list[int]) -> tuple[Facts, tuple[Any, ...]]:
    facts = Facts(sizes)
    a, b, c = facts.sizes
    found: list[Any] = [a + b * 2, a - c, (b + 7) // 8]
    if a % 4 == 0 and a > 3:
        found.append(b // a)
    if not prefers_less(b, 16):
        found.append(a * c)
    table = {a: 1, b: 2}  # where equal keys are one
    found.append(a + len(table))
    return facts, tuple(found)


@given(SIZES, SIZES)
def test_both_say_the_same(sizes: list[int], others: list[int]) -> None:
    facts, found = made_for(sizes)
    places = tuple(one.at for one in found)
    assert facts.at(sizes, places) == tuple(one.value for one in found)
    said = facts.at(others, places)
    for _ in range(_ONE_BY_ONE):
        assert facts.at(others, places) == said
    assert facts._test is not None
    assert facts.at(others, places) == said
    if said is not None:  # it would be made in the same way
        again, numbers = made_for(others)
        assert [one.at for one in numbers] == list(places)
        assert said == tuple(one.value for one in numbers)
        assert again.asked == facts.asked
    assert facts.admit(others) or said is None
