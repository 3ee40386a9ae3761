"""A case of the comparison: one computation, written for each peer as its users write it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """`array` is the function in NumPy's words, given the namespace first: NumPy runs it with
    NumPy, JAX with jax.numpy, and Tenfold compiles what NumPy runs. `own` has the functions of
    peers that say it otherwise, by the peer's name, each given the peer's module first; for numexpr
    it is a text. A peer that is None there, or that has neither, does not take part. `streams`:
    memory may bound it, since inputs are read once, so it is also held beside a copy."""

    group: str
    name: str
    inputs: Callable[[np.random.Generator], tuple[Array, ...]]
    array: Function | None = None
    own: dict[str, Any] = field(default_factory=dict)
    close: float = 1e-3  # of the largest element of NumPy's result
    streams: bool = False

    @property
    def title(self) -> str:
        return f"{self.group}: {self.name}"


def normal(*shapes: tuple[int, ...], dtype: Any = np.float32) -> Callable[..., tuple[Array, ...]]:
    """Inputs of these shapes, drawn from the normal distribution."""
    return lambda rng: tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)
