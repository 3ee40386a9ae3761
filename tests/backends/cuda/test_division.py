"""Division by what a row shares on a simulated GPU: the bits of a division, whatever is divided."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold.kernel import Builder, Kernel
from tests.backends.cuda.beside import beside, values

COLUMNS = 256


def rows_over(dtype: str, rows: int) -> Kernel:
    """Each row of an array over the greatest of another's."""
    b = Builder()
    x, y = b.buffer(dtype, rows * COLUMNS), b.buffer(dtype, rows * COLUMNS)
    out = b.buffer(dtype, rows * COLUMNS, "write")
    i, j = b.axis(rows), b.axis(COLUMNS)
    over, k = b.reduced(COLUMNS, 1)
    top = b.reduce("max", (over,), b.load(y, i * COLUMNS + k))
    b.store(out, i * COLUMNS + j, b.op("div", dtype, b.load(x, i * COLUMNS + j), top))
    return b.finish()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_every_kind_of_divisor(dtype: str) -> None:
    """Ordinary ones, those beyond the bounds, negative ones, zeros, infinities, NaN, subnormals;
    over ordinary numbers, special ones, and quotients that are subnormal or overflow."""
    info = np.finfo(np.dtype(values(1, dtype).dtype))
    rng = np.random.default_rng(2)
    ordinary = np.abs(rng.standard_normal(40)) + 0.1
    edge = [1.0, 3.0, -7.0, 0.0, -0.0, np.inf, -np.inf, np.nan, float(info.tiny), float(info.max)]
    edge += [float(info.smallest_subnormal), 2.0**40, 2.0**-40, 2.0**41, 2.0**-41, 2.0**-100]
    divisors = np.array([*ordinary, *edge], info.dtype)
    y = np.repeat(divisors[:, None], COLUMNS, 1)
    x = values(y.shape, dtype, 3)
    with np.errstate(all="ignore"):
        x[:, 1::4] = rng.standard_normal(x[:, 1::4].shape) * float(info.tiny) * 8
        x[::2, 2::4] = rng.standard_normal(x[::2, 2::4].shape)
        x[:, 3::8] = float(info.max) * rng.random(x[:, 3::8].shape)
    done = beside(rows_over(dtype, len(divisors)), x, y, np.zeros_like(x))
    assert done.text.count("slow") > 1


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_random_bits(dtype: str) -> None:
    rng = np.random.default_rng(5)
    kind = values(1, dtype).dtype
    raw = f"u{kind.itemsize}"
    ends = np.iinfo(raw)
    x, y = (rng.integers(0, ends.max, (200, COLUMNS), raw).view(kind) for _ in range(2))
    y[:] = np.abs(np.where(np.isfinite(y[:, :1]), y[:, :1], 3))
    y[::2] = 1 + rng.random((100, 1))
    beside(rows_over(dtype, 200), x, y, np.zeros_like(x))
