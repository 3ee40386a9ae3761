"""Kernels that begin before those before them have ended: each waits before it reads or writes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cuda import compile as compiling
from tenfold.backends.cuda.assemble import ModuleCode
from tenfold.backends.cuda.compile import to_ptx
from tenfold.backends.cuda.emit.overlap import overlapped
from tenfold.backends.cuda.target import named
from tenfold.backends.llvm.target import llvmlite_version
from tests.backends.cpu.running import mapped, reduction
from tests.backends.cpu.test_kernels import softmax
from tests.backends.cuda.beside import GPU, beside, values
from tests.backends.cuda.simulated import SimulatedGpu, simulated
from tests.backends.cuda.test_compile import assembled
from tests.backends.cuda.test_tile import transposed

KERNELS = {
    "point": (mapped("exp", "f32", "f32", 1, (300,)), [300, 300]),
    "tile": (transposed(40, 50), [2000, 2000, 2000]),
    "rows": (softmax(5, 100, 1), [500, 500]),
    "long rows": (softmax(2, 20000, 1), [40000, 40000]),
    "columns": (reduction("sum", "f32", (2000, 40), (0,)), [80000, 40, 40]),
    "kept columns": (softmax(300, 40, 0), [12000, 12000]),
    "serial": (reduction("sum", "f32", (4, 30, 5), (0, 2)), [600, 30, 30]),
}


def waits_first(ptx: str) -> int:
    """How many kernels there are; each lets others begin and waits before it touches memory."""
    functions = re.findall(r"\.entry .*?\n}", ptx, re.S)
    for text in functions:
        begin = text.index("griddepcontrol.launch_dependents")
        wait = text.index("griddepcontrol.wait")
        touched = re.search(r"\b(ld|st|atom|red)\.(global|shared|volatile)", text)
        assert begin < wait
        assert touched is None or wait < touched.start()
    assert "ld.global.nc" not in ptx  # the assembler may move such a load before the wait
    return len(functions)


@pytest.mark.parametrize("name", KERNELS)
def test_every_function_waits_first(name: str) -> None:
    kernel, sizes = KERNELS[name]
    dtypes = [b.dtype for b in kernel.buffers[: len(sizes)]]
    arrays = [values(n, dtype) for n, dtype in zip(sizes, dtypes, strict=True)]
    done = beside(kernel, *arrays)
    ptx = to_ptx(done.text, GPU)
    assert waits_first(ptx) == {"long rows": 3}.get(name, 1)
    assembled(ptx, GPU)


def test_so_do_routines_and_what_stands_between_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products, sorts, running sums, scatters, loops, branches: all that a recorder may join by a
    programmatic edge."""
    texts: set[str] = set()

    def noted(
        self: ModuleCode, target: object, text: str = "", *args: object, **named: object
    ) -> None:
        texts.add(text)
        init(self, target, text, *args, **named)  # type: ignore[arg-type]

    init = ModuleCode.__init__
    monkeypatch.setattr(ModuleCode, "__init__", noted)

    def f(x: Any, i: Any) -> Any:
        def body(c: Any) -> Any:
            return c[0] * 0.5 + np.sort(c[0], axis=0), c[1] + 1

        y, n = tn.while_loop(lambda c: c[1] < 3, body, (x, np.int32(0)))
        z = np.cumsum(x @ y, axis=1)
        np.add.at(z, i, z)
        return tn.cond(n > 2, lambda: z, lambda: -z), z.argmax()

    x, i = values((40, 40)), np.arange(40)[::-1] % 7
    program = simulated(SimulatedGpu(races=False)).compile(tn.trace(f, x.copy(), i))
    program([x, i])
    texts.discard("")
    assert len(texts) > 4
    assert sum(waits_first(compiling.to_ptx(text, GPU)) for text in texts) > 8


def test_older_chips_have_no_such_kernels() -> None:
    kernel, _ = KERNELS["rows"]
    x = values((5, 100))
    text = beside(kernel, x, np.zeros_like(x)).text
    old = named("sm_80", llvmlite_version())
    assert not old.overlap
    assert "griddepcontrol" not in to_ptx(text, old)
    assert "ld.global.nc" in to_ptx(text, old)
    assert "griddepcontrol" in overlapped(text)
