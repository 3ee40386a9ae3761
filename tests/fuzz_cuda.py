"""Random programs on a GPU, against the CPU's bits.

    python tests/fuzz_cuda.py 5000 [first seed [processes]]

A program's plan is run three times and has to give the CPU backend's bits, whatever those of a NaN
are. Where it does not, it is judged by the rule of agreement: products of matrices are a library's,
products of complex numbers are joined in another order, and the bits of a NaN can be seen by a
program that asks for them. What disagrees is printed with its seed, as is what fails.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

os.environ.setdefault("TENFOLD_CACHE", "off")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from draw import draw_program

from tenfold.backends.cpu.backend import BACKEND as CPU
from tenfold.backends.registry import backend_named
from tenfold.parity.certificate import Certificate
from tenfold.parity.check import check
from tenfold.parity.rule.bits import same_bits

Array = np.ndarray[Any, Any]
SAME, AGREES = "the CPU's bits", "agrees"


def equal(one: Array, other: Array) -> bool:
    """Whether two results are one, but for the bits of NaN."""
    if same_bits(one, other):
        return True
    if one.dtype.kind not in "fcV":
        return False
    a, b = one.astype(np.complex128), other.astype(np.complex128)
    nan = np.isnan(a)
    if not np.array_equal(nan, np.isnan(b)):
        return False
    return same_bits(np.where(nan, 0, a), np.where(nan, 0, b))


def attempt(seed: int) -> tuple[int, str]:
    """How a program fares."""
    graph, arrays = draw_program(seed)
    try:
        wanted = CPU.compile(graph)([a.copy() for a in arrays])
    except Exception as error:
        return seed, f"on the CPU: {type(error).__name__}: {error}"
    try:
        program = backend_named("cuda").compile(graph)
        first = program([a.copy() for a in arrays])
        for _ in range(2):
            again = program([a.copy() for a in arrays])
            if not all(map(same_bits, first, again)):
                return seed, "two runs differ"
        if all(map(equal, wanted, first)):
            return seed, SAME
        verdict = check(program, graph, [a.copy() for a in arrays], limit=None).verdict
        return seed, AGREES if isinstance(verdict, Certificate) else str(verdict)
    except Exception as error:
        return seed, f"{type(error).__name__}: {error}"


def main(count: int, first: int = 0, processes: int = os.cpu_count() or 1) -> int:
    """How many programs are wrong."""
    started, found = time.perf_counter(), {SAME: 0, AGREES: 0}
    agreed, wrong = list[int](), list[int]()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        for seed, what in pool.map(attempt, range(first, first + count), chunksize=4):
            if what in found:
                found[what] += 1
                agreed += [seed] if what == AGREES else []
            else:
                wrong.append(seed)
                print(f"seed {seed}: {what[:500]}", flush=True)
    seconds = time.perf_counter() - started
    print(
        f"{count} programs from seed {first} in {seconds:.0f} s: {found[SAME]} with the CPU's bits"
    )
    print(f"{len(agreed)} agree: {agreed}")
    print(f"{len(wrong)} wrong: {wrong}")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
