"""Errors of sums beside NumPy's, over lengths, schedules and kinds of terms.

    python benchmarks/accuracy.py [largest power of ten]

Each figure is our error divided by NumPy's own sum of the same terms as one vector, both against
the exact sum: below 1 is better than NumPy. The errors of single sums are partly luck, so those of
several draws are added up. Where NumPy happens to be exact, and we are not, the figure is our error
in units in the last place of the sum of magnitudes, marked `u`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import tenfold as tn

Array = np.ndarray[Any, Any]
# How the terms are laid out, and what sums them up, as one number of equal ones.
SCHEDULES: dict[str, tuple[Callable[[Array], Array], Callable[[Any], Any]]] = {
    "whole": (lambda x: x, lambda x: x.sum()),
    "mean": (lambda x: x, lambda x: x.mean() * x.size),
    "rows": (lambda x: np.stack([x, x]), lambda x: x.sum(1)),
    "columns": (lambda x: np.repeat(x[:, None], 20, 1), lambda x: x.sum(0)),
    "wide columns": (lambda x: np.repeat(x[:, None], 300, 1), lambda x: x.sum(0)),
    "middle": (lambda x: np.repeat(x[None, :, None], 20, 2), lambda x: x.sum(1)),
    "strided": (lambda x: np.repeat(x, 2), lambda x: x[::2].sum()),
    "product": (lambda x: x, lambda x: x @ np.ones(x.size, x.dtype)),
}
_MOST = {"whole": 10**9, "mean": 10**9, "product": 10**9, "wide columns": 10**5}  # terms; or 10^6
KINDS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "0.1": lambda rng, n: np.full(n, 0.1),
    "uniform": lambda rng, n: rng.random(n),
    "normal": lambda rng, n: rng.standard_normal(n),
}


def errors(n: int, dtype: str, kind: str) -> dict[str, tuple[float, float]]:
    """For each schedule our error and NumPy's, in units in the last place of the magnitudes' sum,
    over all draws."""
    names = [name for name in SCHEDULES if n <= _MOST.get(name, 10**6)]
    ours, theirs = dict.fromkeys(names, 0.0), 0.0
    for seed in range(1 if kind == "0.1" or n > 10**6 else 5 if n > 10**4 else 40):
        x = KINDS[kind](np.random.default_rng(seed), n).astype(dtype)
        true, unit = math.fsum(x), math.fsum(np.abs(x)) * float(np.finfo(dtype).eps)
        theirs += abs(float(x.sum()) - true) / unit
        for name in names:
            layout, f = SCHEDULES[name]
            got = np.ravel(tn.jit(f, verify="off")(layout(x)))[0]
            ours[name] += abs(float(got) - true) / unit
    return {name: (ours[name], theirs) for name in names}


def ratio(ours: float, theirs: float) -> str:
    if theirs:
        return f"{ours / theirs:.2f}"
    return f"{ours:.3f}u" if ours else "="


def main() -> None:
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    head = "".join(f"{name:>14s}" for name in SCHEDULES)
    for dtype in ("f4", "f8"):
        for kind in KINDS:
            print(f"{dtype} {kind:10s}{head}")
            for power in range(1, most + 1):
                found = errors(10**power, dtype, kind)
                cells = (ratio(*found[n]) if n in found else "" for n in SCHEDULES)
                print(f"  10^{power:<8d} " + "".join(f"{c:>14s}" for c in cells), flush=True)


if __name__ == "__main__":
    main()
