"""Kernels that begin before those before them have ended: each waits before it reads or writes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tenfold.backends.cuda.compile import prepare, to_ptx
from tenfold.backends.cuda.target import named
from tenfold.backends.llvm.target import llvmlite_version
from tenfold.errors import Unsupported
from tenfold.kernel import Kernel
from tenfold.kernel.passes.generalise import generalise
from tests.backends.cpu.running import mapped, reduction
from tests.backends.cpu.test_kernels import softmax
from tests.backends.cuda.beside import GPU, beside, values
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


@pytest.mark.parametrize("name", KERNELS)
def test_every_function_waits_first(name: str) -> None:
    kernel, sizes = KERNELS[name]
    dtypes = [b.dtype for b in kernel.buffers[: len(sizes)]]
    arrays = [values(n, dtype) for n, dtype in zip(sizes, dtypes, strict=True)]
    done = beside(kernel, *arrays, early=True)
    functions = re.findall(r"define ptx_kernel.*?\n}", done.text, re.S)
    assert len(functions) == len(done.launches)
    assert len(functions) == {"long rows": 3}.get(name, 1)
    for text in functions:
        first = text.index("call void @llvm.nvvm.griddepcontrol.launch.dependents()")
        wait = text.index("call void @llvm.nvvm.griddepcontrol.wait()")
        assert first < wait < re.search(r" (load|store) ", text).start()  # type: ignore[union-attr]
        assert "!invariant.load" not in text  # such a load could be moved before it
    ptx = to_ptx(done.text, GPU)
    assert ptx.count("griddepcontrol.wait") == len(functions)
    assembled(ptx, GPU)


def test_the_others_do_not_wait() -> None:
    kernel, _ = KERNELS["rows"]
    x = values((5, 100))
    assert "griddepcontrol" not in beside(kernel, x, np.zeros_like(x)).text


def test_older_chips_have_no_such_kernels() -> None:
    kernel: Kernel = KERNELS["point"][0]
    with pytest.raises(Unsupported, match="sm_80"):
        prepare(generalise(kernel), named("sm_80", llvmlite_version()), early=True)
