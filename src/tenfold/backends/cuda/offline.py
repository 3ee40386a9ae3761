"""Programs for a chip that is not here: they can be looked at and saved, not called."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from tenfold.backends.cuda.target import CudaTarget, target_remark
from tenfold.backends.guard import Guard
from tenfold.backends.program import Array, BoundProgram, Program, Stepper
from tenfold.errors import DeviceProblem
from tenfold.plan import Plan
from tenfold.reference import Callbacks

if TYPE_CHECKING:
    from tenfold.backends.backend import Backend


class OfflineProgram(Program):
    """A plan for a chip. Its code is made when it is saved."""

    target: CudaTarget

    def __init__(
        self,
        plan: Plan,
        target: CudaTarget,
        backend: Backend,
        callbacks: Callbacks | None = None,
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(callbacks)
        self.plan, self.graph, self.strict = plan, plan.graph, strict
        self.target, self._backend = target, backend
        self.parameters = tuple(p.type for p in plan.graph.parameters)
        self.outputs = plan.graph.output_types
        self.donated, self.arena_bytes = plan.donated, plan.arena_bytes
        self.judged: set[str] = set()

    @property
    def backend(self) -> Backend:
        return self._backend

    def remarks(self) -> list[str]:
        return [target_remark(self.target)]

    def _refuse(self) -> NoReturn:
        raise DeviceProblem(
            f"this program is made for {self.target.name} wherever that is, not for a GPU here",
            fix="save its plan, f.plan(...).save(path), and load it where that GPU is; or leave "
            "target out to run it on the GPU of this machine",
        )

    def __call__(self, arrays: Sequence[Any], callbacks: Callbacks | None = None) -> list[Array]:
        self._refuse()

    def make_bound(
        self,
        slow: Callable[..., Any],
        captures: Sequence[Array],
        guards: Sequence[Guard],
        updates: Sequence[int],
        answer: int | None,
    ) -> BoundProgram:
        self._refuse()

    def stepper(self) -> Stepper:
        self._refuse()

    def watch_for(self, plans: Collection[int]) -> None:
        self._refuse()
