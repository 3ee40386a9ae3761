"""Plans in memory, and behind that on disk: found by graph and options, the least recently used
dropped."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

from tenfold.backends.backend import Backend, KernelRequest
from tenfold.backends.program import Program
from tenfold.backends.registry import backend_named
from tenfold.cache.disk import explains, log
from tenfold.cache.recompile import RecompileWatch
from tenfold.cache.record import Caller, record_of
from tenfold.cache.stored import (
    Options,
    find_certificate,
    find_program,
    keep_certificate,
    keep_program,
    options_of,
    why_missing,
)
from tenfold.collector import resting
from tenfold.errors import FileError
from tenfold.graph import Graph
from tenfold.locks import Lock
from tenfold.parity.certificate import Certificate, verdict_from_data, verdict_to_data
from tenfold.stats import count, timed

if TYPE_CHECKING:
    from tenfold.plan import Plan

CAPACITY = 4096  # programs
NODES = 1 << 17  # of their graphs together: some 2 KB each

Key = tuple[str, str, bool, tuple[int, ...]]  # backend, digest, strict, donated parameters


class Plans:
    """Programs by what they were made of.

    A graph is looked up by its digest and then compared. A program that is dropped here lives as
    long as it runs; it is made again when it is asked for again.
    """

    def __init__(self, capacity: int = CAPACITY, nodes: int = NODES) -> None:
        self.capacity = capacity
        self.nodes = nodes
        self._held: OrderedDict[Key, tuple[Graph, Program]] = OrderedDict()
        self._weight = 0  # nodes of these
        self._lock = Lock()
        self._making: dict[Key, Lock] = {}

    def __len__(self) -> int:
        return len(self._held)

    def get(
        self,
        graph: Graph,
        *,
        backend: str | None = None,
        strict: bool = False,
        donated: tuple[int, ...] = (),
        caller: Callable[[], Caller] | None = None,
        watch: RecompileWatch | None = None,
    ) -> Program:
        """The program of a graph, made if it is neither here nor on disk.

        `donated` are parameters that the plan may write into. `caller` says which function it is
        for, to be asked on a miss; `watch` counts its misses.
        """
        chosen = backend_named(backend)
        key = (chosen.name, graph.digest, strict, donated)
        found = self._find(key, graph)
        if found is not None:
            return found
        with self._lock:
            making = self._making.setdefault(key, Lock())
        with making:  # one thread makes it, the others wait and find it
            found = self._find(key, graph)
            if found is None:
                found = self._stored(chosen, graph, strict, donated)
                found = found or self._make(chosen, graph, strict, donated, caller, watch)
                found.graph = graph
                with self._lock:
                    self._held[key] = (graph, found)
                    self._weight += len(graph.nodes)
            with self._lock:
                self._making.pop(key, None)
        self._drop()
        return found

    def _drop(self) -> None:
        """Let go of the least recently used beyond the capacity, and have those who hold them do
        so: nothing else limits how many plans a process keeps."""
        while self._too_many():
            with self._lock:
                if not self._too_many():
                    return
                graph, program = self._held.pop(self._unused())
                self._weight -= len(graph.nodes)
            program.retire()

    def _too_many(self) -> bool:
        count = len(self._held)
        return count > self.capacity or (count > 1 and self._weight > self.nodes)

    def _unused(self) -> Key:
        """The first, but for the newest, that answered no call since it was last looked at here:
        calls that native code answers do not come by."""
        oldest = next(iter(self._held))
        for _ in range(len(self._held) - 1):
            key, (_, program) = next(iter(self._held.items()))
            answered = program.answered
            if answered <= program.counted:
                return key
            program.counted = answered
            self._held.move_to_end(key)
        return oldest

    def holds(
        self, graph: Graph, backend: Backend, *, strict: bool, donated: tuple[int, ...]
    ) -> bool:
        """Whether the program of a graph is here."""
        with self._lock:
            found = self._held.get((backend.name, graph.digest, strict, donated))
            return found is not None and found[0] == graph

    def _stored(
        self, backend: Backend, graph: Graph, strict: bool, donated: tuple[int, ...]
    ) -> Program | None:
        """The program of a graph from disk, with what a check found of it."""
        options = options_of(strict, donated)
        with timed("load"):
            found = find_program(backend, graph, options, lambda: _planned(backend, graph, donated))
            if found is None:
                return None
            _take_over(graph, options, found)
        count("cache_hits")
        return found

    def _make(
        self,
        backend: Backend,
        graph: Graph,
        strict: bool,
        donated: tuple[int, ...],
        caller: Callable[[], Caller] | None,
        watch: RecompileWatch | None,
    ) -> Program:
        """A new program. One that was compiled is kept on disk at once; one whose code was there
        waits for that until there is time."""
        count("cache_misses")
        options = options_of(strict, donated)
        start = perf_counter()
        with resting():
            request = backend.request(strict)
            plan = _planned(backend, graph, donated, request)
            made = backend.bind(plan, strict=strict, request=request)
        made.seconds = perf_counter() - start
        if not made.compiled:
            made.unkept = lambda program: keep_program(graph, options, program)
            return made
        asked = caller() if caller else None
        if asked is not None and explains():
            lines = why_missing(backend, graph, options, asked)
            if lines:
                log().info("%s is compiled anew: %s", asked, "; ".join(lines))
        keep_program(graph, options, made, asked)
        _take_over(graph, options, made)  # perhaps its entry was dropped, but not its certificate
        if asked is not None and watch is not None:
            watch.note(record_of(asked, graph.digest, backend, options))
        return made

    def _find(self, key: Key, graph: Graph) -> Program | None:
        with self._lock:
            found = self._held.get(key)
            if found is None or found[0] != graph:
                return None
            self._held.move_to_end(key)
            count("cache_hits")
            return found[1]

    def clear(self) -> None:
        with self._lock:
            self._held.clear()
            self._weight = 0


def keep_verdict(program: Program) -> None:
    """Write what a check found beside the program on disk, for later processes. What another one
    has found meanwhile is not lost: a refutation is taken over, and a whole certificate stays."""
    program.noted = program.certificate
    if program.checksum is None:
        return
    options = options_of(program.strict, program.donated)
    if program.refuted is None:
        known, refuted = _known(program.graph, options, program)
        if refuted is not None:
            program.refuted = refuted
            program.close()
            return
        ours = program.certificate
        if known is not None and known.complete and not (ours is not None and ours.complete):
            return
    found = verdict_to_data(program.certificate, program.refuted)
    keep_certificate(program.graph, options, program, found)


def _take_over(graph: Graph, options: Options, program: Program) -> None:
    """Believe what checks by other processes found of this very code."""
    program.certificate, program.refuted = _known(graph, options, program)
    program.noted = program.certificate


def _known(
    graph: Graph, options: Options, program: Program
) -> tuple[Certificate | None, str | None]:
    """The certificate or refutation that lies beside a program on disk."""
    try:
        return verdict_from_data(find_certificate(graph, options, program))
    except FileError as error:  # then it is checked again
        log().warning("%s; the plan will be checked again", error.message)
        return None, None


def _planned(
    backend: Backend,
    graph: Graph,
    donated: tuple[int, ...],
    request: KernelRequest | None = None,
) -> Plan:
    with timed("plan"):
        plan = backend.plan(graph, donated, request=request)
    count("plans")
    return plan


plans = Plans()
