"""Plans of random programs are certified: the check refutes nothing that is right."""

import sys
from pathlib import Path

import pytest

from tenfold.execute import Program, plan_for
from tenfold.parity.certificate import Certificate
from tenfold.parity.check import check

sys.path.insert(0, str(Path(__file__).parents[1]))
from fuzz import draw_program

# Among them those that once showed a fault of the check: ranges of values, copies before loops.
SEEDS = (1, 48, 64, 75, 118, 163, 213, 253, 346, 661, 807, *range(5000, 5010))


@pytest.mark.parametrize("seed", SEEDS)
def test_certified(seed):
    graph, arrays = draw_program(seed)
    found = check(Program(plan_for(graph)), graph, arrays, limit=None, every=True).verdict
    assert isinstance(found, Certificate), str(found)
    assert found.complete
