"""Keywords of other compilers, given to `tn.jit`: what to write instead.

One thing has one word here, so they are not taken; the error shows the call to write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from tenfold.api.specialisation import Options
from tenfold.errors import TypeMismatch
from tenfold.trace.source import describe, here

# Those that have a word here, which takes the same values: JAX's.
_SAME = {
    "static_argnums": "static",
    "static_argnames": "static",
    "donate_argnums": "donate",
    "donate_argnames": "donate",
}

_WHOLE = "a function is always traced and compiled as a whole"
_FLOATS = "floating-point operations may be contracted unless strict=True"
_KEPT = "plans are kept on disk anyhow, in the folder tn.config.cache"
_ALL = "the plan is a function of the graph: nothing is tried out"

# The others: whose they are, and why to leave them out or what there is.
_OTHERS = {
    "device": ("JAX's", "where it runs is named by its backend: tn.jit(f, backend='cpu')"),
    "inline": ("JAX's", "a jitted function called in another is part of it: leave it out"),
    "keep_unused": ("JAX's", "arguments that are not used cost nothing: leave it out"),
    "abstracted_axes": ("JAX's", "pad to a few sizes: tn.jit(f, buckets={'x': [1, 8, 64]})"),
    "nopython": ("numba's", f"{_WHOLE}: leave it out"),
    "forceobj": ("numba's", "tn.jit(f, compile='never') runs the reference evaluator"),
    "nogil": ("numba's", "native code lets other threads run: leave it out"),
    "parallel": ("numba's", "a plan runs in one thread, and many may run at once: leave it out"),
    "fastmath": ("numba's", f"{_FLOATS}: leave it out"),
    "cache": ("numba's", f"{_KEPT}: leave it out"),
    "boundscheck": ("numba's", "an index out of range always raises: leave it out"),
    "error_model": ("numba's", "errors are NumPy's: leave it out"),
    "locals": ("numba's", "dtypes are NumPy's: cast in the function, x.astype(np.float32)"),
    "signature": ("numba's", "the first call says the types, or f.warm(tn.spec(shape, dtype))"),
    "fullgraph": ("torch.compile's", f"{_WHOLE}: leave it out"),
    "dynamic": ("torch.compile's", "pad to a few sizes: tn.jit(f, buckets={'x': [1, 8, 64]})"),
    "mode": ("torch.compile's", f"{_ALL}: leave it out"),
    "options": ("torch.compile's", f"{_ALL}: leave it out"),
    "disable": ("torch.compile's", "tn.config.disable = True runs all functions as written"),
}


def refuse(given: Mapping[str, Any]) -> None:
    """TypeMismatch for keywords that `tn.jit` does not take."""
    for name, value in given.items():
        if name in _SAME:
            own = _SAME[name]
            whose, fix = "JAX's", f"write tn.jit(f, {own}={value!r}): names or positions"
        elif name in _OTHERS:
            whose, fix = _OTHERS[name]
        else:
            whose, fix = "", f"it takes {', '.join(f.name for f in fields(Options))}"
        what = f"{whose} keyword {name!r} is not taken" if whose else f"no keyword {name!r}"
        raise TypeMismatch(f"jit: {what}", where=describe(here()), fix=fix)
