"""The embedded data set."""

from __future__ import annotations

import pytest

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.family import Size, family, read_size
from tenfold.apps.prover.input.program import program_of
from tenfold.apps.prover.reference.bottom_up import close


def test_the_same_seed_makes_the_same_data() -> None:
    assert family(Size(seed=3)) == family(Size(seed=3))
    assert family(Size(seed=3)) != family(Size(seed=4))


def test_sizes_are_options() -> None:
    small, large = family(Size(families=2)), family(Size(families=20))
    assert len(small.train) < len(large.train)
    assert read_size("family") == read_size("family:") == Size()
    assert read_size("family:children=5,held=10") == Size(children=5, held=10)


@pytest.mark.parametrize("text", ["family:x=1", "family:seed", "family:seed=a", "family:held=95"])
def test_wrong_sizes_are_said(text: str) -> None:
    with pytest.raises(InputError):
        read_size(text)


@pytest.mark.parametrize("seed", range(5))
def test_the_rules_hold_of_every_tree(seed: int) -> None:
    data = family(Size(seed=seed))
    known = program_of(data)
    truth = {known.number(f) for split in data.splits.values() for f in split}
    closure = close(known)
    assert closure.complete
    assert set(closure.heights) <= truth
    proved = sum(known.number(f) in closure.heights for f in data.test)
    assert proved > 0.7 * len(data.test)


def test_the_splits_are_apart() -> None:
    assert not family(Size()).notices
