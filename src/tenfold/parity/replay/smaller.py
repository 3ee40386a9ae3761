"""Large kernels judged at smaller sizes.

Code is judged once for all sizes that share it, so what a large step computes is written down for
smaller ones, one size after another, as long as it is planned as one call of the same kernel, for
whose sizes the very code is right; other code may be preferred for these, as where results stay in
the caches. Nothing is compiled for that. What hangs on the sizes at hand is judged with the steps
and the whole, on the caller's values.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from tenfold.backends.program import Program
from tenfold.errors import TenfoldError
from tenfold.frozen import frozen
from tenfold.graph import Graph
from tenfold.ops import TABLE
from tenfold.parity.replay.drawn import kernels
from tenfold.parity.replay.replay import Replay
from tenfold.parity.replay.state import PlanFacts
from tenfold.plan import KernelStep, Plan
from tenfold.plan.steps.structure import resized, structure_of

LARGE = 1 << 18  # elements of a step from which smaller sizes are looked for
_ENOUGH = 1 << 14  # elements that are few enough
# Elements by whose multiples sizes differ: rests and alignments stay as they are, or runs of sums.
_UNITS = 64, 512
_TRIED = 14  # multiples, each twice the one before
_NEAR = 64  # elements by which sizes differ that belong together: the ends of slices


@frozen(eq=False)
class SmallStep:
    """A kernel's step, the only one in a plan of its own."""

    about: PlanFacts
    replay: Replay


def smaller(
    program: Program, about: PlanFacts, at: int, name: str, watch: Callable[[], None]
) -> SmallStep | None:
    """What a step computes for the smallest sizes that were found, by the kernel of this name; None
    where there are none."""
    step = about.plan.steps[at]
    assert isinstance(step, KernelStep)
    if program.target != program.backend.target():
        return None
    call = about.plan.call(step)

    def served(graph: Graph) -> Plan | None:
        """The plan of a graph, if it is a call of the same code."""
        watch()
        plan = program.backend.plan(graph)
        (*others, last) = plan.steps or (None,)
        if others or not isinstance(last, KernelStep):
            return None
        return plan if program.serves(call, plan.call(last)) else None

    graph, found = about.part(at).graph, None
    sizes = structure_of(graph, TABLE).sizes
    for size in sorted(sizes, reverse=True):
        for other in _candidates(size, sizes) if size in sizes else ():
            near = [n for n in sizes if abs(n - size) < _NEAR]
            try:
                made = resized(graph, {n: n - size + other for n in near}, TABLE)
            except TenfoldError:  # others follow from it
                break
            plan = served(made)
            if plan is not None:
                graph, found = made, plan
                sizes = structure_of(graph, TABLE).sizes
                break
        if found is not None and sum(type.size for type in graph.types) <= _ENOUGH:
            break
    if found is None:
        return None
    made_of = program.lend(call, found)
    small = PlanFacts(found, found.graph, about.number)
    names = [found for found, _, _ in kernels(made_of, {0: small})]
    return SmallStep(small, Replay(made_of)) if names == [name] else None


def _candidates(size: int, taken: Container[int]) -> Iterator[int]:
    """Sizes below one, the smallest first. Equal sizes are another kernel's."""
    found = set()
    for unit in _UNITS:
        for n in range(_TRIED):
            other = size % unit + (unit << n)
            found.add(other + unit if other in taken else other)
    return (other for other in sorted(found) if other < size and other not in taken)
