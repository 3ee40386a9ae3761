"""Random programs, and the comparison of their plans with the reference.

    python tests/fuzz.py 20000 [first seed [processes]] [--level x86-64-v3]

runs that many, in a process for each core unless told otherwise: 0.15 to 0.35 seconds of one each.
Code is made for the machine, for a level that it can execute, or with `--level all` for each of
these in turn. Each disagreement, crash or hang is printed with its seed as it is met, and all seeds
once more at the end, also of a run that is interrupted; slow programs are named, too. A seed alone
is run, with what was drawn for it, by

    python tests/fuzz.py show SEED [--level x86-64-v3]

Every second program has functions for all its loops that can have one, however few their rounds.
A program is compared in six ways: each step of its plan is judged on the reference's own values,
in all rounds of loops; the whole plan is judged from end to end, as far as bounds reach; arguments
laid out in odd ways, donated ones among them, have to give the same bits; so has the program with
values of arguments' types written into these; so has it on any number of threads, with every kernel
cut that can be; and so does every twentieth program when it is
written to a file and read again, which is also judged in strict mode.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

os.environ.setdefault("TENFOLD_CACHE", "off")
# There is a process for each core: threads of the library would wait for each other's turns.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from draw import draw_program
from legality import hold_kernels_to_it

from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.backends.cpu.target import VARIABLE, executable, machine
from tenfold.backends.cpu.threads import cut
from tenfold.backends.file import PlanFile, write_file
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.program import OUTPUTS, decline
from tenfold.config import config
from tenfold.graph import Graph
from tenfold.parity.certificate import Certificate
from tenfold.parity.check import check
from tenfold.parity.rule.agree import Uncertain, disagreement, judged
from tenfold.parity.rule.bits import same_bits
from tenfold.plan.steps import loops

hold_kernels_to_it()

Array = np.ndarray[Any, Any]
SLOW = 20  # seconds from which a program is named as slow
HANGS = 120  # and from which it counts as hanging
PAUSE = 0.2  # seconds between looks at the processes
STARTING, DONE = -2, -1  # in place of the seed under way
THREADS = 1, 2, 3, 8


@contextmanager
def everything_cut() -> Iterator[None]:
    """Have kernels cut that are far too small for it to pay."""
    before = cut.LEAST, cut.PART
    cut.LEAST, cut.PART = 0.0, 10.0
    try:
        yield
    finally:
        cut.LEAST, cut.PART = before


@contextmanager
def on_threads(number: int) -> Iterator[None]:
    """Have plans run on so many threads."""
    before = config.threads
    config.threads = number
    try:
        yield
    finally:
        config.threads = before


def compare(
    graph: Graph, arrays: Sequence[Array], seed: int = 0, target: LLVMTarget | None = None
) -> str | None:
    """What is wrong with the plan of a graph on these arguments, or None. The seed says which are
    donated, how they are laid out, whether loops of few rounds get functions, and whether the rarer
    checks are made."""
    few, loops.FEW = loops.FEW, loops.FEW * (seed % 2)
    try:
        return _compared(graph, arrays, seed, target)
    finally:
        loops.FEW = few


def _compared(
    graph: Graph, arrays: Sequence[Array], seed: int, target: LLVMTarget | None
) -> str | None:
    source = random.Random(seed)
    donated = tuple(n for n in range(len(arrays)) if source.random() < 0.3)
    with everything_cut():
        program = CompiledProgram(BACKEND.plan(graph, donated, target), target=target)
    found = check(program, graph, _copies(arrays), limit=None, every=True)
    if not isinstance(found.verdict, Certificate):
        return str(found.verdict)
    made = found.made
    assert made is not None
    wrong = None if graph.effects else _end_to_end(graph, arrays, made)
    if wrong is not None:
        return wrong
    laid = [strange(a, source) for a in arrays]
    wrong = _differs("with odd strides", program(laid), made)
    kept = [n for n in range(len(arrays)) if n not in donated]
    if wrong is None and not all(same_bits(laid[n], arrays[n]) for n in kept):
        wrong = "an argument was written to that is not donated"
    for number in THREADS:
        with on_threads(number):
            wrong = wrong or _differs(f"on {number} threads", program(_copies(arrays)), made)
    wrong = wrong or _updates(graph, arrays, source, target)
    if wrong is not None or seed % 20:
        return wrong
    with everything_cut():
        data = write_file(graph, program, {})
    restored, _ = PlanFile.read(data).restore()
    assert restored is not None
    wrong = _differs("from a file", restored(_copies(arrays)), made)
    if wrong is not None:
        return wrong
    strict = CompiledProgram(BACKEND.plan(graph, donated, target), strict=True, target=target)
    verdict = check(strict, graph, _copies(arrays), limit=None, every=True).verdict
    return None if isinstance(verdict, Certificate) else f"in strict mode: {verdict}"


def _end_to_end(graph: Graph, arrays: Sequence[Array], made: Sequence[Array]) -> str | None:
    """What is wrong with the outputs, by the bounds of a graph without effects."""
    try:
        for number, (mine, theirs) in enumerate(zip(made, judged(graph, arrays), strict=True)):
            wrong = disagreement(mine, theirs)
            if wrong is not None:
                return f"output {number}, end to end: {wrong}"
    except Uncertain:
        pass  # a branch or a loop hangs on the last bits; the steps were judged
    return None


def _copies(arrays: Sequence[Array]) -> list[Array]:
    return [a.copy() for a in arrays]


def _differs(how: str, got: Sequence[Array], made: Sequence[Array]) -> str | None:
    for number, (a, b) in enumerate(zip(got, made, strict=True)):
        if not same_bits(a, b):
            return f"output {number} {how}: other bits than before"
    return None


def _updates(
    graph: Graph, arrays: Sequence[Array], source: random.Random, target: LLVMTarget | None
) -> str | None:
    """What is wrong with a program that has values of arguments' types for updates of these."""
    updates = {}
    for n, parameter in enumerate(graph.parameters):
        fits = [v for v, type in enumerate(graph.types) if type == parameter.type and v != n]
        if fits:
            updates[n] = source.choice(fits)
    if not updates:
        return None
    outputs = (*graph.outputs, *updates.values())
    graph = Graph(graph.parameters, graph.nodes, outputs, graph.effects)
    program = CompiledProgram(BACKEND.plan(graph, (), target), target=target)
    given = [np.array(a, p.type.dtype) for a, p in zip(arrays, graph.parameters, strict=True)]
    made = program(_copies(given))
    call = program.bind(decline, updates=[*updates], answer=OUTPUTS).call
    got = [*map(np.asarray, call(*given)), *(given[n] for n in updates)]
    return _differs("with updates", got, made)


def strange(array: Array, source: random.Random) -> Array:
    """A copy of an array in memory that is laid out in some other way."""
    way = source.randrange(6)
    if way == 0 or not array.ndim:
        return array.copy()
    if way == 1:
        return np.asfortranarray(array.copy(order="F"))
    if way == 2:  # steps of two elements
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        made = wide[..., ::2]
    elif way == 3:  # backwards
        made = np.empty(array.shape, array.dtype)[..., ::-1]
    elif way == 4:  # at an odd address
        raw = np.empty(array.nbytes + 1, np.uint8)[1:]
        made = raw[: array.nbytes].view(array.dtype).reshape(array.shape)
    else:  # a step of nothing, where all along an axis is the same
        if not (array.size and same_bits(array, np.broadcast_to(array[:1], array.shape))):
            return array.copy()
        return np.broadcast_to(array[:1].copy(), array.shape)
    made[...] = array
    return made


def attempt(seed: int) -> str | None:
    """What is wrong with the program of a seed, or None."""
    try:
        return compare(*draw_program(seed), seed)
    except Exception:
        return traceback.format_exc(limit=-4)


def work(seeds: Sequence[int], at: Any, tell: Any) -> None:
    """Go through seeds; `at` is the one under way. What is found is told at once, so that nothing
    is lost when the next program ends the process."""
    for seed in seeds:
        at.value = seed
        since = time.perf_counter()
        wrong = attempt(seed)
        passed = time.perf_counter() - since
        if wrong is not None or passed > SLOW:
            tell.send((seed, wrong, passed))
    at.value = DONE


@dataclass(slots=True)
class Tally:
    """What was found so far."""

    first: int
    count: int
    level: str | None = None
    started: float = field(default_factory=time.perf_counter)
    wrong: list[int] = field(default_factory=list)
    slow: list[tuple[float, int]] = field(default_factory=list)

    def note(self, seed: int, wrong: str | None, passed: float) -> None:
        if wrong is not None:
            self.wrong.append(seed)
            level = f" --level {self.level}" if self.level else ""
            again = f"python tests/fuzz.py show {seed}{level}"
            print(f"seed {seed}: {wrong}\n  again: {again}", flush=True)
        if passed > SLOW:
            self.slow.append((passed, seed))

    def progress(self, done: int) -> None:
        passed = time.perf_counter() - self.started
        print(f"{done} programs, {len(self.wrong)} wrong, {passed:.0f} s", flush=True)

    def summary(self, done: int) -> str:
        passed = time.perf_counter() - self.started
        code = f", code for {self.level}" if self.level else ""
        found = f"{len(self.wrong)} wrong, {passed:.0f} s{code}"
        lines = [f"{done} programs from seed {self.first}, {found}"]
        if done < self.count:
            lines.append(f"interrupted: {self.count - done} of {self.count} were not run")
        if self.slow:
            shown = ", ".join(f"{n} ({t:.0f} s)" for t, n in sorted(self.slow, reverse=True)[:10])
            lines.append(f"{len(self.slow)} took more than {SLOW} s: {shown}")
        if self.wrong:
            lines.append("wrong: " + " ".join(map(str, sorted(self.wrong))))
        return "\n".join(lines)


@dataclass(slots=True)
class Worker:
    """A process and the seeds that are left to it."""

    left: Sequence[int]
    process: Any = None
    at: Any = None
    told: Any = None
    seen: int = -1
    waited: float = 0.0  # for the seed under way; not by the clock, since a run may be suspended

    def start(self, context: Any) -> None:
        self.told, tell = context.Pipe(duplex=False)
        self.at = context.Value("q", STARTING)
        self.process = context.Process(target=work, args=(self.left, self.at, tell))
        self.process.start()
        tell.close()
        self.seen, self.waited = STARTING, 0.0

    def look(self, tally: Tally) -> None:
        """Hear what was found. A process that has crashed, or hangs, is done with."""
        alive, seed = self.process.is_alive(), self.at.value
        self.hear(tally)
        self.waited += PAUSE
        if seed != self.seen:
            self.seen, self.waited = seed, 0.0
        hangs = alive and seed >= 0 and self.waited > HANGS
        if hangs:
            self.process.kill()
        if seed >= 0:
            self.left = self.left[self.left.index(seed) :]
        if alive and not hangs:
            return
        self.process.join()
        if seed != DONE:
            seed = self.left[0]
            how = "takes too long" if hangs else f"ended the process: {self.process.exitcode}"
            tally.note(seed, how, self.waited)
        self.left = self.left[1:] if seed != DONE else []
        self.process = None

    def hear(self, tally: Tally) -> None:
        try:
            while self.told.poll():
                tally.note(*self.told.recv())
        except EOFError:  # all is told
            pass

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()


def main(
    count: int, first: int = 0, processes: int = os.cpu_count() or 1, level: str | None = None
) -> int:
    """How many programs are wrong. A process that crashes or hangs is replaced by another."""
    if level:
        os.environ[VARIABLE] = level  # of the processes to come
    context = multiprocessing.get_context("spawn")
    workers = [Worker(range(first + n, first + count, processes)) for n in range(processes)]
    tally, done, reported = Tally(first, count, level), 0, 0
    try:
        while any(w.process or w.left for w in workers):
            for worker in workers:
                if worker.process is None and worker.left:
                    worker.start(context)
                if worker.process is not None:
                    worker.look(tally)
            done = count - sum(len(w.left) for w in workers)
            if done // 500 > reported:
                reported = done // 500
                tally.progress(done)
            time.sleep(PAUSE)
    except KeyboardInterrupt:
        for worker in workers:
            worker.stop()
        print(tally.summary(done))
        sys.exit(130)
    print(tally.summary(count))
    return len(tally.wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=["20000"])
    parser.add_argument("--level", choices=[*executable(machine()), "all"])
    options = parser.parse_args()
    if options.what[0] == "show":
        if options.level:
            os.environ[VARIABLE] = options.level
        graph, arrays = draw_program(int(options.what[1]))
        print(graph, *arrays, attempt(int(options.what[1])), sep="\n")
    else:
        levels = executable(machine()) if options.level == "all" else [options.level]
        numbers = [int(given) for given in options.what]
        numbers += [0, os.cpu_count() or 1][len(numbers) - 1 :]
        sys.exit(sum(main(*numbers, level) for level in levels) > 0)
