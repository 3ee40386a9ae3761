"""Divisors: the ufuncs gcd and lcm."""

from __future__ import annotations

import numpy as np

from tenfold.trace.array import Array
from tenfold.trace.surface.emit import emit
from tenfold.trace.surface.ufuncs.ufuncs import define
from tenfold.types import KIND


def lcm(x: Array, y: Array) -> Array:
    if KIND[x.dtype] == "i":
        x, y = emit("abs", x), emit("abs", y)
    # Dividing by a divisor of 0 gives 0, which is the least multiple of 0.
    return emit("mul", emit("floordiv", x, emit("gcd", x, y)), y)


define(np.gcd, "gcd")
define(np.lcm, lcm)
