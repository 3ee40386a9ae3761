"""Chains of elementwise operations, from what fits a register file to what fits no cache."""

from __future__ import annotations

from typing import Any

from case import Case, normal

SIZES = {"1e3": 1_000, "1e5": 100_000, "1e7": 10_000_000}


def maths(np: Any, x: Any, b: Any) -> Any:
    return np.tanh(np.exp(-x * x) + b) / (1 + np.exp(-x))


def maths_numba(nb: Any, options: dict[str, Any]) -> Any:
    import numpy as np

    @nb.njit(**options)
    def run(x: Any, b: Any) -> Any:
        out = np.empty_like(x)
        one = np.float32(1)
        for i in nb.prange(x.size):
            out[i] = np.tanh(np.exp(-x[i] * x[i]) + b[i]) / (one + np.exp(-x[i]))
        return out

    return run


def affine(np: Any, x: Any, y: Any, z: Any) -> Any:
    return x * y + z


def affine_numba(nb: Any, options: dict[str, Any]) -> Any:
    import numpy as np

    @nb.njit(**options)
    def run(x: Any, y: Any, z: Any) -> Any:
        out = np.empty_like(x)
        for i in nb.prange(x.size):
            out[i] = x[i] * y[i] + z[i]
        return out

    return run


def polynomial(np: Any, x: Any) -> Any:
    return (((x * 0.25 - 1.5) * x + 0.75) * x - 2.0) * x + 1.0


def polynomial_numba(nb: Any, options: dict[str, Any]) -> Any:
    import numpy as np

    @nb.njit(**options)
    def run(x: Any) -> Any:
        out = np.empty_like(x)
        for i in nb.prange(x.size):
            v = x[i]
            out[i] = (((v * 0.25 - 1.5) * v + 0.75) * v - 2.0) * v + 1.0
        return out

    return run


def cases() -> list[Case]:
    found = []
    for size, n in SIZES.items():
        found += [
            Case(
                "pointwise",
                f"tanh(exp(-x²)+b)·sigmoid(x), f32, {size}",
                normal((n,), (n,)),
                maths,
                {
                    "torch": lambda torch, x, b: (
                        torch.tanh(torch.exp(-x * x) + b) * torch.sigmoid(x)
                    ),
                    "numba": maths_numba,
                    "numexpr": ("x b", "tanh(exp(-x*x)+b) / (1 + exp(-x))"),
                },
                streams=size == "1e7",
            ),
            Case(
                "pointwise",
                f"x·y+z, f32, {size}",
                normal((n,), (n,), (n,)),
                affine,
                {"torch": affine, "numba": affine_numba, "numexpr": ("x y z", "x*y+z")},
                streams=size == "1e7",
            ),
            Case(
                "pointwise",
                f"polynomial of degree 4, f64, {size}",
                normal((n,), dtype=float),
                polynomial,
                {
                    "torch": polynomial,
                    "numba": polynomial_numba,
                    "numexpr": ("x", "(((x*0.25-1.5)*x+0.75)*x-2.0)*x+1.0"),
                },
                streams=size == "1e7",
            ),
        ]
    return found
