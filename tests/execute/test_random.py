"""Random programs agree with the reference; `make fuzz` draws many more."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz import compare, draw_program


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_random_programs(seed: int) -> None:
    graph, arrays = draw_program(seed)
    wrong = compare(graph, arrays)
    assert wrong is None, f"seed {seed}: {wrong}"


# What once went wrong: in place across loops, a reduction stored apart, products of nothing.
@pytest.mark.parametrize("seed", [4, 5, 154, 172, 325, 644, 785, 1050, 1445, 2515, 4307, 11853])
def test_programs_that_were_wrong(seed: int) -> None:
    graph, arrays = draw_program(seed)
    assert compare(graph, arrays) is None
