"""Policy: which graphs of lazy arrays are compiled, when, and what runs the others.

A graph is worth a plan where many elements are neither given nor wanted: those a plan need not
write to memory and read again. `realise` asks here about such graphs alone; all others NumPy's
functions run node by node. A graph that comes back for the `compile_runs`-th time is compiled and
checked in the background; until its plan has a certificate, it is run as before. No clock decides,
and nobody waits. With compile="always" every graph is compiled at once, with "never" none is.

What is counted is bounded: the least recently used are forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from tenfold.api.verify import verify_option
from tenfold.config import config
from tenfold.errors import CompileWarning
from tenfold.frames import warn
from tenfold.graph import Graph
from tenfold.locks import Lock
from tenfold.promote.background import Job, held, submit, waiting
from tenfold.reference import Callbacks, evaluate
from tenfold.trace.lazy import realise

if TYPE_CHECKING:
    from tenfold.backends.program import Program

KEPT = 1024  # graphs that are counted or kept compiled
NODES = 1 << 16  # that these have


class GraphCount:
    """How often a graph has come back, its program, and the job that makes that."""

    __slots__ = ("job", "nodes", "program", "runs")

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.runs = 0
        self.job: Job | None = None
        self.program: Program | None = None


class Counts:
    """The graphs that were met last, by any key that tells them apart."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: OrderedDict[Hashable, GraphCount] = OrderedDict()
        self._nodes = 0

    def __len__(self) -> int:
        return len(self._held)

    def next(self, key: Hashable, nodes: int) -> GraphCount:
        """Count a graph once more."""
        with self._lock:
            found = self._held.get(key)
            if found is None:
                found = self._held[key] = GraphCount(nodes)
                self._nodes += nodes
                while len(self._held) > KEPT or (self._nodes > NODES and len(self._held) > 1):
                    self._nodes -= self._held.popitem(last=False)[1].nodes
            else:
                self._held.move_to_end(key)
            found.runs += 1
            return found


counts = Counts()


def run(graph: Graph, arrays: Sequence[Any], callables: realise.Callables = ()) -> list[Any]:
    """The outputs of a graph: by a plan where the policy says so, else by the reference."""
    if not graph.effects and not callables and graph.nodes:
        found = None
        if config.compile != "never" and not config.disable:
            found = planned(graph, lambda: graph, len(graph.nodes), arrays)
        if found is not None:
            return found
    return list(evaluate(graph, arrays, Callbacks(callables)))


def planned(
    key: Hashable, build: Callable[[], Graph], nodes: int, arrays: Sequence[Any]
) -> list[Any] | None:
    """The outputs of a graph by its plan, if it has one by now."""
    count = counts.next(key, nodes)
    if count.program is None and config.compile == "always":
        count.program = _made(build)
    job = count.job
    if job is None or job.lost:
        if count.program is None and count.runs >= config.compile_runs:
            count.job = _submit(count, build, arrays)
    elif job.done.is_set() and not job.told:
        job.told = True
        job.warn()
        if job.error is not None:
            warn(
                "lazy arrays: compiling in the background failed, NumPy's functions go on "
                f"answering: {job.error!r}",
                CompileWarning,
            )
    return None if count.program is None else _answer(count.program, arrays)


def _submit(count: GraphCount, build: Callable[[], Graph], arrays: Sequence[Any]) -> Job | None:
    """Have a graph compiled and its plan checked on these arrays, which nobody writes to; None
    where the background has enough to do."""
    from tenfold.api.checking import COPIED, WAITING

    size = sum(array.nbytes for array in arrays)
    if waiting() > WAITING or held() + size > COPIED:
        return None

    def work() -> None:
        program = _made(build)
        if program.certificate is None and program.refuted is None:
            _answer(program, arrays, quiet=True)
        count.program = program

    return submit(work, None, size)


def _made(build: Callable[[], Graph]) -> Program:
    """The program of a graph, from the cache of plans."""
    from tenfold.cache import plans  # loaded when something is compiled

    return plans.get(build())


def _answer(program: Program, arrays: Sequence[Any], quiet: bool = False) -> list[Any]:
    """The outputs for these arrays by a plan, checked as a function's is."""
    from tenfold.api.checking import answer, go_on, note

    verify, given, graph = verify_option(None), list(arrays), program.graph
    outputs = answer(program, graph, given, Callbacks(), verify, strict=False, quiet=quiet)
    if verify not in ("off", "always"):
        go_on(program, graph, given)
    note(program)
    return outputs


realise.use(run, planned)
