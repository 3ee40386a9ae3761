"""Random kernels on every target against a plain interpreter."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest

from tenfold.backends.llvm.target import LLVMTarget
from tenfold.kernel import Builder, Index, Kernel
from tenfold.kernel.ir.index import flat, strides, unflatten
from tenfold.types import DTYPES
from tests.backends.cpu.running import TARGETS, together
from tests.kernel.interpret import interpret

Array = np.ndarray[Any, Any]

EXTENTS = (1, 2, 3, 5, 15, 16, 17, 33, 64, 70)
INTEGER_OPS = ("add", "sub", "mul", "max", "min", "and", "or", "xor", "floordiv", "mod")
FLOAT_OPS = ("add", "sub", "mul", "max", "min")
COUNT = int(os.environ.get("TENFOLD_KERNELS", "60"))


class Draw:
    """Makes one random kernel and arrays for it."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.b = Builder()
        self.arrays: list[Array] = []
        self.dtype = self.r.choice(["f32", "i32", "f64", "i8", "u16", "i64"])
        self.axes = [(self.b.axis(n), n) for n in self.extents(self.r.randint(1, 3), 6000)]
        self.reduced: list[tuple[int, Index, int]] = []
        lengths = [n for _, n in self.axes]
        for turn, n in enumerate(self.extents(self.r.randint(0, 2), 70)):
            if self.r.random() < 0.3:
                n = self.r.choice(lengths)
            number, index = self.b.reduced(n, 1, turn)
            self.reduced.append((number, index, n))

    def extents(self, count: int, most: int) -> list[int]:
        found: list[int] = []
        for _ in range(count):
            fitting = [n for n in EXTENTS if n <= most]
            found.append(self.r.choice(fitting))
            most //= found[-1]
        return found

    def array(self, size: int, dtype: str) -> int:
        kind = DTYPES[dtype]
        if dtype == "bool":
            values = self.rng.random(size) > 0.5
        elif kind.kind == "f":
            values = self.rng.integers(-8, 8, size) / 4  # exact sums, whatever their order
            if self.r.random() < 0.2 and size:
                values[self.rng.integers(0, size)] = np.nan
        else:
            values = self.rng.integers(0 if kind.kind == "u" else -9, 9, size)
        self.arrays.append(np.asarray(values).astype(kind))
        return self.b.buffer(dtype, size)

    def load(self, with_reduced: bool) -> int:
        """A load by a random walk over some of the axes."""
        b, r = self.b, self.r
        some = [(i, n) for i, n in self.axes if r.random() < 0.75]
        if with_reduced:
            some += [(i, n) for _, i, n in self.reduced]
        r.shuffle(some) if r.random() < 0.5 else None
        shape = [n for _, n in some]
        where = [i for i, _ in some]
        condition = None
        form = r.random()
        if some and form < 0.2:  # reversed along one axis
            k = r.randrange(len(some))
            where[k] = -where[k] + (shape[k] - 1)
        elif some and form < 0.45:  # padded along one axis
            k = r.randrange(len(some))
            before, after = r.randint(0, 2), r.randint(0, 2)
            inner = shape[k] - before - after
            if inner > 0:
                where[k] = where[k] - before
                condition = b.inside(where[k], 0, inner)
                shape[k] = inner
        index = flat(where, strides(shape))
        if some and condition is None and form > 0.8:  # read as if of another shape
            size = int(np.prod(shape))
            factor = next((f for f in (2, 3, 5) if size % f == 0), 1)
            other = unflatten(index, (factor, size // factor))
            index = (
                flat(other[::-1], (factor, 1))
                if r.random() < 0.5
                else flat(other, (size // factor, 1))
            )
        return b.load(self.array(int(np.prod(shape)), self.dtype), index, condition)

    def gathered(self) -> int:
        """A load whose place is itself loaded."""
        axis, n = self.r.choice(self.axes)
        self.arrays.append(self.rng.integers(0, 7, n).astype(np.int32))
        row = self.b.as_index(self.b.load(self.b.buffer("i32", n), axis), 7)
        other, m = self.r.choice(self.axes)
        return self.b.load(self.array(7 * m, self.dtype), row * m + other)

    def combine(self, pool: list[int]) -> int:
        b, r = self.b, self.r
        x, y = r.choice(pool), r.choice(pool)
        if r.random() < 0.2:
            test = b.op(r.choice(["lt", "ge", "eq", "ne"]), "bool", x, y)
            return b.select(test, x, r.choice(pool))
        if r.random() < 0.1:
            axis, _ = r.choice(self.axes)
            return b.op("add", self.dtype, x, b.cast(b.index(axis, "i32"), self.dtype))
        ops = FLOAT_OPS if self.dtype[0] == "f" else INTEGER_OPS
        return b.op(r.choice(ops), self.dtype, x, y)

    def kernel(self) -> tuple[Kernel, list[Array]]:
        b, r = self.b, self.r
        pool = [self.load(False) for _ in range(r.randint(1, 3))]
        if r.random() < 0.3:
            pool.append(self.gathered())
        for _ in range(r.randint(0, 4)):
            pool.append(self.combine(pool))
        if self.reduced:
            for _ in range(r.randint(1, 2)):
                inner = [self.load(True), *([self.load(True)] if r.random() < 0.4 else [])]
                value = self.combine([*inner, inner[0], r.choice(pool)])
                kinds = (
                    ("sum", "max", "min") if self.dtype[0] == "f" else ("sum", "prod", "max", "min")
                )
                axes = tuple(number for number, _, _ in self.reduced)
                pool.append(b.reduce(r.choice(kinds), axes, value))
            for _ in range(r.randint(0, 3)):
                pool.append(self.combine(pool))
        for value in {pool[-1], r.choice(pool)}:
            order = list(self.axes)
            if r.random() < 0.3:
                r.shuffle(order)
            shape = [n for _, n in order]
            out = b.buffer(self.dtype, int(np.prod(shape)), "write")
            self.arrays.append(np.full(int(np.prod(shape)), 3, DTYPES[self.dtype]))
            condition = None
            if r.random() < 0.15:
                axis, n = r.choice(self.axes)
                condition = b.inside(axis, n // 3, n)
            b.store(out, flat([i for i, _ in order], strides(shape)), value, condition)
        return b.finish(), self.arrays


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
@pytest.mark.parametrize("start", range(0, COUNT, 20))
def test_random_kernels(start: int, target: LLVMTarget) -> None:
    drawn = [Draw(seed).kernel() for seed in range(start, start + 20)]
    programs = together([kernel for kernel, _ in drawn], target)
    for seed, (kernel, arrays), program in zip(
        range(start, start + 20), drawn, programs, strict=True
    ):
        want, got = [a.copy() for a in arrays], [a.copy() for a in arrays]
        interpret(kernel, want)
        program(*got)
        for n, (a, e) in enumerate(zip(got, want, strict=True)):
            assert np.array_equal(a, e, equal_nan=a.dtype.kind == "f"), (
                f"seed {seed}, buffer {n}\n{kernel}\n{program.compiled.schedule}"
            )
