"""Random programs, and the comparison of their plans with the reference.

    python tests/fuzz.py 20000 [first seed [processes]]

runs that many, in a process for each core unless told otherwise: about a sixth of a second each.
Each disagreement, crash or hang is printed with its seed; what was drawn for it is shown by

    python tests/fuzz.py show SEED

A program is compared in four ways: each step of its plan is judged on the reference's own values,
in all rounds of loops; the whole plan is judged from end to end, as far as bounds reach; arguments
laid out in odd ways, donated ones among them, have to give the same bits; and so does every
twentieth program when it is written to a file and read again, which is also judged in strict mode.
Another twentieth is judged on a lesser processor, with shorter vectors.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any

os.environ.setdefault("TENFOLD_CACHE", "off")

import numpy as np
from draw import draw_program

from tenfold.backends.cpu.target import host_target, named
from tenfold.execute import Program, plan_for
from tenfold.execute.file import PlanFile, write_file
from tenfold.graph import Graph
from tenfold.parity.agree import Uncertain, disagreement, judged, same_bits
from tenfold.parity.certificate import Certificate
from tenfold.parity.check import check

Array = np.ndarray[Any, Any]
SLOW = 120  # seconds from which a program counts as hanging


def compare(graph: Graph, arrays: Sequence[Array], seed: int = 0) -> str | None:
    """What is wrong with the plan of a graph on these arguments, or None. The seed says which are
    donated, how they are laid out, and whether the rarer checks are made."""
    source = random.Random(seed)
    donated = tuple(n for n in range(len(arrays)) if source.random() < 0.3)
    program = Program(plan_for(graph, donated=donated))
    found = check(program, graph, _copies(arrays), limit=None, every=True)
    if not isinstance(found.verdict, Certificate):
        return str(found.verdict)
    made = found.made
    assert made is not None
    try:
        for number, (mine, theirs) in enumerate(zip(made, judged(graph, arrays), strict=True)):
            wrong = disagreement(mine, theirs)
            if wrong is not None:
                return f"output {number}, end to end: {wrong}"
    except Uncertain:
        pass  # a branch or a loop hangs on the last bits; the steps were judged
    laid = [strange(a, source) for a in arrays]
    wrong = _differs("with odd strides", program(laid), made)
    kept = [n for n in range(len(arrays)) if n not in donated]
    if wrong is None and not all(same_bits(laid[n], arrays[n]) for n in kept):
        wrong = "an argument was written to that is not donated"
    if wrong is None and seed % 20 == 10:
        return _on_lesser(graph, arrays, source)
    if wrong is not None or seed % 20:
        return wrong
    data = write_file(graph, program, {})
    restored, _ = PlanFile.read(data).restore()
    assert restored is not None
    wrong = _differs("from a file", restored(_copies(arrays)), made)
    if wrong is not None:
        return wrong
    strict = Program(plan_for(graph, donated=donated), strict=True)
    verdict = check(strict, graph, _copies(arrays), limit=None, every=True).verdict
    return None if isinstance(verdict, Certificate) else f"in strict mode: {verdict}"


def _on_lesser(graph: Graph, arrays: Sequence[Array], source: random.Random) -> str | None:
    """What is wrong with the plan for a lesser processor that this one can stand in for."""
    host = host_target()
    lesser = [level for level in ("x86-64-v2", "x86-64-v3") if level < host.cpu]
    if not (host.cpu.startswith("x86-64") and lesser):
        return None
    target = named(source.choice(lesser), host)
    program = Program(plan_for(graph, target), target=target)
    verdict = check(program, graph, _copies(arrays), limit=None, every=True).verdict
    return None if isinstance(verdict, Certificate) else f"on {target.cpu}: {verdict}"


def _copies(arrays: Sequence[Array]) -> list[Array]:
    return [a.copy() for a in arrays]


def _differs(how: str, got: Sequence[Array], made: Sequence[Array]) -> str | None:
    for number, (a, b) in enumerate(zip(got, made, strict=True)):
        if not same_bits(a, b):
            return f"output {number} {how}: other bits than before"
    return None


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


def work(seeds: Sequence[int], at: Any, told: Any) -> None:
    """Go through seeds; `at` is the one under way."""
    for seed in seeds:
        at.value = seed
        wrong = attempt(seed)
        if wrong is not None:
            told.put((seed, wrong))
    at.value = -1


def main(count: int, first: int = 0, processes: int = os.cpu_count() or 1) -> int:
    """How many programs are wrong. A process that crashes or hangs is replaced by another."""
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    left = [range(first + n, first + count, processes) for n in range(processes)]
    running: list[Any] = [None] * processes
    wrong, reported, started = 0, 0, time.perf_counter()
    while any(running) or any(left):
        for n, seeds in enumerate(left):
            if running[n] is None and seeds:
                at = context.Value("q", seeds[0])
                process = context.Process(target=work, args=(seeds, at, told))
                process.start()
                running[n] = [process, at, seeds[0], time.perf_counter()]
            if running[n] is None:
                continue
            process, at, seen, since = running[n]
            seed = at.value
            if seed != seen:
                running[n][2:] = seed, time.perf_counter()
            hangs = seed >= 0 and time.perf_counter() - since > SLOW and seed == seen
            if hangs:
                process.kill()
                process.join()
            if process.is_alive():
                left[n] = seeds[seeds.index(seed) :] if seed >= 0 else left[n]
                continue
            running[n] = None
            left[n] = seeds[seeds.index(seed) + 1 :] if seed >= 0 else seeds[:0]
            if seed >= 0:
                wrong += 1
                what = "takes too long" if hangs else f"ended the process: {process.exitcode}"
                print(f"seed {seed}: {what}", flush=True)
        while not told.empty():
            seed, text = told.get()
            wrong += 1
            print(f"seed {seed}: {text}", flush=True)
        done = count - sum(map(len, left))
        if done // 500 > reported:
            reported = done // 500
            passed = time.perf_counter() - started
            print(f"{done} programs, {wrong} wrong, {passed:.0f} s", flush=True)
        time.sleep(0.2)
    passed = time.perf_counter() - started
    print(f"{count} programs from seed {first}, {wrong} wrong, {passed:.0f} s")
    return wrong


if __name__ == "__main__":
    if sys.argv[1:2] == ["show"]:
        graph, arrays = draw_program(int(sys.argv[2]))
        print(graph, *arrays, attempt(int(sys.argv[2])), sep="\n")
    else:
        sys.exit(main(*map(int, sys.argv[1:])) > 0 if sys.argv[1:] else main(20000) > 0)
