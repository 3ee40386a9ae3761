"""Functions of `kernel/maths` as WGSL over many values: the CPU's bits, where it has fused
multiply-add or not as the adapter has. So they are as exact as the CPU's are."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold.kernel import maths
from tenfold.types import DTYPES
from tests.backends.cpu.running import mapped
from tests.backends.webgpu.beside import Array, beside
from tests.backends.webgpu.here import needs_adapter

pytestmark = [needs_adapter, pytest.mark.filterwarnings("ignore::RuntimeWarning")]
COUNT = 20_000


def drawn(dtype: str, seed: int) -> Array:
    """Ordinary values, those of every size, and bits as they come, subnormal ones among them."""
    rng, kind = np.random.default_rng(seed), DTYPES[dtype]
    part = COUNT // 4
    reach = 38 if dtype == "f32" else 300
    bits = rng.integers(0, 2 ** (8 * kind.itemsize) - 1, part, np.uint64)
    return np.concatenate(
        [
            rng.standard_normal(part),
            rng.uniform(-100, 100, part),
            rng.choice([-1, 1], part) * 10.0 ** rng.uniform(-reach, reach, part),
            bits.astype(f"u{kind.itemsize}").view(kind).astype(np.float64),
        ]
    ).astype(kind)


@pytest.mark.parametrize("dtype", maths.DTYPES)
@pytest.mark.parametrize("name", maths.FUNCTIONS)
def test_functions(name: str, dtype: str) -> None:
    arity = maths.FUNCTIONS[name].arity
    args = [drawn(dtype, n) for n in range(arity)]
    beside(mapped(name, dtype, dtype, arity, (COUNT,)), *args, np.zeros(COUNT, DTYPES[dtype]))
