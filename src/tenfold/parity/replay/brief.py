"""A check in brief: of a plan whose kernels were all judged before, in plans for other extents say.

The reference is run once. The plan's steps are carried out as it passes them, one after another in
guarded memory and on the plan's own values, and what each stores is compared with the reference's.
Then the plan is run as a whole, by the very bytecode that answers calls, and has to give the same
bits. Nothing is refuted here: what does not agree closely is left to the full check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.backends.program import Program
from tenfold.errors import TenfoldError
from tenfold.frozen import frozen
from tenfold.graph import Graph
from tenfold.parity.replay.replay import Frame, Replay, run_whole
from tenfold.parity.replay.state import PlanFacts
from tenfold.parity.rule.agree import closely
from tenfold.parity.rule.bits import same_bits
from tenfold.plan import BranchStep, LoopStep, Plan
from tenfold.reference import Callbacks, evaluate
from tenfold.reference.evaluate import Path

Array = np.ndarray[Any, Any]


@frozen(eq=False)
class BriefResult:
    """What a check in brief gives: the reference's outputs and the plan's, the largest error of
    each step and of each output in units of its largest element."""

    outputs: list[Array]
    made: list[Array]
    steps: tuple[float, ...]
    end_to_end: tuple[float, ...]


def may_be_brief(program: Program, graph: Graph) -> bool:
    """Whether a program is but steps that are surely run, and end: it calls no Python, and has no
    branch and no loop that may go on for ever where the plan is wrong."""
    steps = (step for plan in program.plan.every for step in plan.steps)
    open_ended = (
        isinstance(s, BranchStep) or (isinstance(s, LoopStep) and not s.counted) for s in steps
    )
    return not graph.effects and not any(open_ended)


def check_in_brief(
    program: Program,
    about: PlanFacts,
    arrays: Sequence[Array],
    replay: Replay,
    watch: Callable[[], None],
) -> BriefResult | None:
    """What is found of a plan; None where it has to be looked at closer. `watch` is called now and
    then, and may raise."""
    run = _BriefRun(about, arrays, replay, watch)
    try:
        outputs = evaluate(about.graph, arrays, Callbacks(), run.watch)
        run.advance()
        if not run.close or len(run.ulps) < len(run.times) or run.frame.damage() is not None:
            return None
        made, damage = run_whole(program, arrays, Callbacks())
    except TenfoldError:  # the full check raises it again, or finds out who is to blame
        return None
    if damage is not None or not all(map(same_bits, made, run.frame.outputs)):
        return None
    ends = [closely(a, b, run.count) for a, b in zip(made, outputs, strict=True)]
    if None in ends:
        return None
    return BriefResult(outputs, made, tuple(run.ulps), tuple(u for u in ends if u is not None))


class _BriefRun:
    """The steps of a plan, carried out behind a run of the reference."""

    def __init__(
        self,
        about: PlanFacts,
        arrays: Sequence[Array],
        replay: Replay,
        on_time: Callable[[], None],
    ) -> None:
        self.about, self.replay, self.on_time = about, replay, on_time
        self.frame = Frame(about.plan, arrays)
        self.close = True
        self.ulps: list[float] = []
        self.count = 0  # steps so far, each as often as it was run
        self.times = _times(about.plan)
        # What is written range by range is compared after the last one.
        layout = about.layout
        self.writes = [
            [place for place in places if layout.last_write[place] == at]
            for at, places in enumerate(layout.writes)
        ]
        self.values = dict(enumerate(arrays))
        self.kept = {value for places in self.writes for _, value in places}

    def watch(self, path: Path, graph: Graph, position: int, results: Sequence[Array]) -> None:
        self.on_time()
        if path or not self.close:
            return
        for value, result in enumerate(results, graph.starts[position]):
            if value in self.kept:
                self.values[value] = result
                self.advance()

    def advance(self) -> None:
        """Run every step for which there is what it is compared with."""
        plan = self.about.plan
        while self.close and len(self.ulps) < len(plan.steps):
            at = len(self.ulps)
            wanted = [(slot, self.values.get(value)) for slot, value in self.writes[at]]
            if any(one is None for _, one in wanted):
                return
            self.replay.run(self.frame, at)
            self.count += self.times[at]
            self.ulps.append(self.compare(wanted))

    def compare(self, wanted: Sequence[tuple[int, Array | None]]) -> float:
        """The largest error of what a step wrote."""
        most = 0.0
        for slot, one in wanted:
            held = self.frame.memory(slot)
            found = closely(held, np.asarray(one).reshape(held.shape), self.count)
            if found is None:
                self.close = False
                break
            most = max(most, found)
        return most


def _times(plan: Plan) -> list[int]:
    """How many steps are run for each one: for a loop those of all rounds, if these are known."""
    known: dict[int, int] = {}
    made: list[int] = []
    for one in plan.every:
        made = [
            max(s.length, 1) * sum(known[id(one.plans[p])] for p in s.plans)
            if isinstance(s, LoopStep)
            else 1
            for s in one.steps
        ]
        known[id(one)] = sum(made)
    return made  # of the plan itself, which is the last
