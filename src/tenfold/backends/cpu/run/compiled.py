"""Programs of plans whose kernels are compiled here."""

from __future__ import annotations

from collections.abc import Mapping

from tenfold.backends.cpu.loop.compile import loop_functions, names
from tenfold.backends.cpu.run.bytecode import Bytecode, routines_of
from tenfold.backends.cpu.run.fixed import GATE, make_ahead
from tenfold.backends.cpu.run.kernels import (
    Request,
    judged_kernels,
    polling,
    routine_image,
    steps_image,
)
from tenfold.backends.cpu.run.native import NativeProgram, asking
from tenfold.backends.cpu.target import host_target
from tenfold.backends.cpu.threads.cut import KernelPlace
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.plan import Plan
from tenfold.reference import Callbacks


class CompiledProgram(NativeProgram):
    """A plan bound to the code of its kernels; those that are new are compiled."""

    bytecode: Bytecode

    def __init__(
        self,
        plan: Plan,
        callbacks: Callbacks | None = None,
        *,
        strict: bool = False,
        target: LLVMTarget | None = None,
        request: Request | None = None,
    ) -> None:
        super().__init__(callbacks)
        self.plan = plan
        self.graph = plan.graph  # or the graph that the plan's was made of
        self.strict = strict
        self.target = target or host_target()
        request = request or Request(self.target, strict)
        self.functions = loop_functions(plan, self.target, strict)  # while kernels are compiled
        self.loops = names(self.functions)
        self.code = request.finish(plan.calls)
        make_ahead(GATE, self.target)
        self.compiled = request.compiled
        ask, self._callables = asking(plan, self.running, self.callbacks)
        self._routines = {
            name: routine_image(name, self.target) for name in routines_of(plan, self.target)
        }
        self.bytecode = Bytecode(plan, self.target, self.places(), ask, self.routines(), self.loops)
        self.parameters = tuple(p.type for p in plan.graph.parameters)
        self.outputs = plan.graph.output_types
        self.donated = plan.donated
        self.order = self.bytecode.order(polling(self.code))
        self.arena_bytes = plan.arena_bytes
        self.weight = self.bytecode.weights[id(plan)]
        self.image = steps_image(self.target)
        self.given = self.bytecode.address
        self.kept = (self.bytecode, self.code, self._routines, self.functions, self._callables)
        self.judged = judged_kernels(self.target, strict)

    def places(self) -> Mapping[SizedKernel, KernelPlace]:
        return {call: code.place() for call, code in self.code.items()}

    def code_name(self, call: SizedKernel) -> str:
        return self.code[call].compiled.name

    def serves(self, call: SizedKernel, other: SizedKernel) -> bool:
        return call.kernel == other.kernel and self.code[call].compiled.facts.admit(other.sizes)

    def lend(self, call: SizedKernel, plan: Plan) -> CompiledProgram:
        request = Request(self.target, self.strict)
        request.borrow(plan.calls[0], self.code[call])
        return CompiledProgram(plan, strict=self.strict, target=self.target, request=request)

    def routines(self) -> Mapping[str, int]:
        found = {name: image.address(name) for name, image in self._routines.items()}
        return found | {loop.name: loop.address for loop in self.functions.values()}

    def asked(self, which: int, step: int) -> int:
        """The address of a callable that the bytecode has."""
        return id(self._callables[which, step])
