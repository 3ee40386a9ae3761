"""Record a plan without a device: to find which functions stand between its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from tenfold.backends.cuda.run.kernels import BoundKernel
from tenfold.backends.cuda.run.partials import Partials
from tenfold.backends.cuda.run.record import Surroundings
from tenfold.backends.cuda.run.replay import Replay
from tenfold.backends.cuda.target import CudaTarget
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.plan import Plan

_FIRST, _EACH = 1 << 32, 1 << 40  # addresses: as well aligned as a device's, and far apart


class _Names:
    """A module of which nothing but the names of functions is asked for."""

    def function(self, name: str) -> str:
        return name


class _NoDevice:
    """Takes graphs, and does nothing with them."""

    def __init__(self, target: CudaTarget) -> None:
        self.target = target

    def instantiate(self, recording: Any, places: Sequence[int]) -> Any:
        return recording


def _never() -> NoReturn:
    raise AssertionError("nothing is run")


def glue_of(
    plan: Plan, kernels: Mapping[SizedKernel, BoundKernel], target: CudaTarget
) -> dict[str, str]:
    """The texts of the functions between kernels, by their keys: what moves and counts rounds of
    loops, and loops that are one function."""
    found: dict[str, str] = {}
    given = iter(range(_FIRST, 1 << 60, _EACH))

    def glue(key: str, text: Callable[[CudaTarget], str]) -> _Names:
        if key not in found:
            found[key] = text(target)
        return _Names()

    constants = {id(one): [next(given) for _ in one.constants] for one in plan.every}
    device: Any = _NoDevice(target)
    around = Surroundings(
        device,
        target,
        kernels,
        constants,
        partials=Partials.of(kernels.values()).places(next(given)),
        fault=next(given),
        routines=lambda routine: _Names(),
        workspace=lambda call, aligned: (),
        glue=glue,
        room=lambda nbytes: next(given),
    )
    places = [next(given) for _ in (*plan.graph.parameters, *plan.outputs)]
    Replay(plan, around, next(given), places, _never)
    return found
