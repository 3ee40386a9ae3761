"""Random programs, and the op table, on a device, against the CPU's bits.

    python tests/fuzz_device.py cuda|webgpu 5000 [first seed [processes]]
    python tests/fuzz_device.py cuda|webgpu table [processes]

With `table` each sample of each row is a program of one node, but of those that call what a graph
does not hold, as hooks. A program's plan is run three times and has to give the CPU backend's
bits, whatever those of a NaN are; for an adapter without fused multiply-add the CPU's code is
made for the level that has none. Where it does not, it is judged by the rule of agreement:
products of matrices are a library's, products of complex numbers are joined in another order, and
the bits of a NaN can be seen by a program that asks for them. What disagrees is printed with its
name, as is what fails.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import Any

os.environ.setdefault("TENFOLD_CACHE", "off")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from draw import draw_program

from tenfold.backends.cpu.backend import BACKEND as CPU
from tenfold.backends.cpu.target import VARIABLE
from tenfold.backends.registry import backend_named
from tenfold.graph import Graph
from tenfold.graph.build import Builder
from tenfold.ops import TABLE
from tenfold.parity.certificate import Certificate
from tenfold.parity.check import check
from tenfold.parity.rule.bits import same_bits
from tenfold.types import TensorType, as_dtype

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


@cache
def begin(backend: str) -> None:
    """Have the CPU's code be for a level with fused multiply-add only where the device has it."""
    if not getattr(backend_named(backend).target(), "fma", True):
        os.environ.setdefault(VARIABLE, "x86-64")


def attempt(backend: str, graph: Graph, arrays: Sequence[Array]) -> str:
    """How a program fares."""
    begin(backend)
    try:
        wanted = CPU.compile(graph)([a.copy() for a in arrays])
    except Exception as error:
        return f"on the CPU: {type(error).__name__}: {error}"
    try:
        program = backend_named(backend).compile(graph)
        first = program([a.copy() for a in arrays])
        for _ in range(2):
            again = program([a.copy() for a in arrays])
            if not all(map(same_bits, first, again)):
                return "two runs differ"
        if all(map(equal, wanted, first)):
            return SAME
        verdict = check(program, graph, [a.copy() for a in arrays], limit=None).verdict
        return AGREES if isinstance(verdict, Certificate) else str(verdict)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def drawn(backend: str, seed: int) -> list[tuple[str, str]]:
    return [(f"seed {seed}", attempt(backend, *draw_program(seed)))]


def row(backend: str, name: str) -> list[tuple[str, str]]:
    """How the samples of a row of the table fare."""
    op, found = TABLE[name], []
    for number, sample in enumerate(op.samples(np.random.default_rng(41))):
        builder = Builder(TABLE)
        arrays = [np.asarray(a, order="C") for a in sample.inputs]
        inputs = [builder.parameter(TensorType(as_dtype(a.dtype), a.shape)) for a in arrays]
        made = builder.node(name, inputs, dict(sample.attributes), sample.scopes)
        graph = builder.finish(made)
        found.append((f"{name}, sample {number}", attempt(backend, graph, arrays)))
    return found


def main(backend: str, what: str, *numbers: int) -> int:
    """How many programs are wrong."""
    started, found = time.perf_counter(), {SAME: 0, AGREES: 0}
    agreed, wrong = list[str](), list[str]()
    if what == "table":
        one, asked = row, [op.name for op in TABLE.values() if op.samples and not op.effect]
        processes, chunk = next(iter(numbers), os.cpu_count() or 1), 1
    else:
        first, processes = (*numbers, *(0, os.cpu_count() or 1)[len(numbers) :])
        one, asked, chunk = drawn, range(first, first + int(what)), 4
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        for group in pool.map(partial(one, backend), asked, chunksize=chunk):
            for name, how in group:
                if how in found:
                    found[how] += 1
                    agreed += [name] if how == AGREES else []
                else:
                    wrong.append(name)
                    print(f"{name}: {how[:500]}", flush=True)
    seconds, total = time.perf_counter() - started, sum(found.values()) + len(wrong)
    print(f"{total} programs in {seconds:.0f} s: {found[SAME]} with the CPU's bits")
    print(f"{len(agreed)} agree: {agreed}")
    print(f"{len(wrong)} wrong: {wrong}")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(bool(main(*sys.argv[1:3], *map(int, sys.argv[3:]))))
