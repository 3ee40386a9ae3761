"""What rounding explains, by runs whose results were moved."""

import numpy as np

from tenfold.parity.replay.perturb import _beyond


def test_a_small_difference_that_few_runs_left_alone():
    """It is off by what the large numbers are that it is the difference of."""
    wanted = np.full(100, 0.5)
    wanted[7] = 9.4e-5
    spread = np.full(100, 2e-16)
    spread[7] = 0.0
    got = wanted.copy()
    got[7] += 4.4e-16
    assert _beyond(got, wanted, spread) == ""
    got[7] += 1e-14
    assert "at [7]" in _beyond(got, wanted, spread)


def test_where_nothing_is_moved_nothing_may_differ():
    wanted, spread = np.full(10, 0.5), np.zeros(10)
    got = wanted + 1e-13
    assert _beyond(got, wanted, spread)


def test_a_row_that_runs_move_much_counts_where_they_left_one_element_by_chance() -> None:
    wanted = np.ones((9, 20))
    spread = np.full((9, 20), 1e-16)
    spread[4], spread[4, 2] = 1e-12, 1e-15
    got = wanted.copy()
    got[4, 2] += 1e-12
    assert _beyond(got, wanted, spread) == ""
    got[5, 2] += 1e-12
    assert "at [5, 2]" in _beyond(got, wanted, spread)


def test_of_two_elements_one_that_runs_move_much_does_not_speak_for_the_other() -> None:
    wanted = np.ones((2, 20))
    spread = np.full((2, 20), 1e-16)
    spread[0, :19] = 1e-3
    got = wanted.copy()
    got[1, 7] += 1e-3
    assert "at [1, 7]" in _beyond(got, wanted, spread)
