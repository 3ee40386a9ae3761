"""Which schedule a kernel gets, by fixed rules over what is known of it; it is in the names of its
functions."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold.backends.cuda.compile import module_text, prepare
from tenfold.kernel import Kernel
from tenfold.kernel.passes.generalise import generalise
from tests.backends.cpu.running import Program, mapped, reduction
from tests.backends.cpu.test_kernels import layernorm, softmax
from tests.backends.cuda.beside import GPU, Launched, beside
from tests.backends.cuda.test_tile import transposed

CASES = {
    "few elements": (mapped("exp", "f32", "f32", 1, (1000,)), ["point1"]),
    "many f32": (mapped("exp", "f32", "f32", 1, (10**6,)), ["point4"]),
    "many bf16": (mapped("neg", "bf16", "bf16", 1, (10**6,)), ["point8"]),
    "small transpose": (transposed(100, 100), ["tile32"]),
    "large transpose": (transposed(8192, 8192), ["tile64"]),
    "short rows": (softmax(16384, 64, 1), ["rows4"]),
    "rows of 1024": (softmax(1024, 1024, 1), ["rows32"]),
    "rows of 4096": (layernorm(8192, 4096)[0], ["rows256"]),
    "rows of 65536": (softmax(64, 65536, 1), ["cluster1024"]),
    "few long rows": (softmax(2, 65536, 1), ["long"] * 3),
    "a sum of all": (reduction("sum", "f32", (10**7,), (0,)), ["long"]),
    "long columns": (softmax(8192, 4096, 0), ["clustercolumns8"]),
    "columns that stay": (softmax(1024, 1024, 0), ["kept32"]),
    "sums of columns": (reduction("sum", "f32", (8192, 4096), (0,)), ["columns32"]),
    "two axes": (reduction("sum", "f32", (4, 30, 5), (0, 2)), ["serial"]),
}


@pytest.mark.parametrize("name", CASES)
def test_schedules(name: str) -> None:
    kernel, schedules = CASES[name]
    text, _ = prepare(generalise(Program(kernel).kernel), GPU)
    assert Launched(module_text([text], GPU), [], 0).schedules == schedules


def test_what_runs_has_the_name() -> None:
    kernel: Kernel = softmax(3, 100, 1)
    x = np.zeros((3, 100), np.float32)
    assert beside(kernel, x, x).schedules == ["rows4"]
