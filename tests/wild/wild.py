"""A program as users write them: a plain NumPy function, and how its inputs are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Draw = Callable[[np.random.Generator], tuple[Any, ...]]


@dataclass(frozen=True)
class Wild:
    function: Callable[..., Any]
    draw: Draw
    static: tuple[str, ...]


PROGRAMS: dict[str, Wild] = {}  # by name: who looks for doctests imports a module once more


def wild(draw: Draw, static: tuple[str, ...] = ()) -> Callable[[Any], Any]:
    """List a function among the programs."""

    def keep(function: Any) -> Any:
        PROGRAMS[function.__name__] = Wild(function, draw, static)
        return function

    return keep
