"""What is kept of a program, in plan files and in the cache: PTX, machine code beside it, and how
each kernel of the plan is launched.

PTX runs on every chip from the one it was made for on, under every driver that knows its version;
machine code saves the driver's assembling where the chip is the same. All of it is plain data. A
plan is carried out from its steps, so bringing one back takes the plan, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, replace
from typing import TYPE_CHECKING, Any

import msgpack

from tenfold.backends.cuda.assemble import (
    Cubin,
    ModuleCode,
    assemble,
    modules,
    shared_module,
)
from tenfold.backends.cuda.emit.function import Given, KernelText, Launch
from tenfold.backends.cuda.target import CudaTarget, takes, version_text
from tenfold.backends.facts import facts_data, read_facts, within
from tenfold.backends.llvm.text import Fragment, join
from tenfold.digest import sha256
from tenfold.errors import PlanError
from tenfold.frozen import frozen
from tenfold.kernel.ir.number import Facts
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.plan.file.sections import bad, unpack
from tenfold.types import TensorType, parse_type

if TYPE_CHECKING:
    from tenfold.backends.cuda.backend import Place
    from tenfold.backends.cuda.library.routine import GpuRoutine
    from tenfold.backends.cuda.run.kernels import Kernels
    from tenfold.backends.cuda.run.program import CudaProgram
    from tenfold.plan import Plan
    from tenfold.reference import Callbacks

INTERFACE = 2  # how kernels are given their parameters; code of another number is not used


@frozen(eq=False)
class CudaCode:
    """One chip's code for a plan."""

    target: CudaTarget
    strict: bool
    parameters: tuple[TensorType, ...]
    modules: tuple[ModuleCode, ...]
    kernels: tuple[tuple[int, KernelText, Facts], ...]  # with the number of the module
    codes: tuple[int, ...]  # the kernel of each distinct call of the plan
    routines: tuple[tuple[str, str, int], ...]  # key, digest of the text, module
    glue: tuple[tuple[str, int], ...]  # what stands between kernels: key, module
    place: Place | None = None  # where it may be brought back to
    interface: int = INTERFACE

    def unusable(self) -> str | None:
        """Why it can't run on the GPU of its place, or None."""
        assert self.place is not None
        if self.interface != INTERFACE:
            return "it was made by a Tenfold whose kernels are launched in another way"
        capability, driver = self.place.runs()
        if self.target.maths != self.place.maths:
            return f"its functions are computed in the {self.target.maths} way"
        if self.target.capability > capability:
            return f"it is for sm_{self.target.capability}, this is an sm_{capability}"
        here = self.place.target().libraries
        for name, version in self.target.libraries.items():
            if version and version != here[name]:
                return f"it calls {name} {version}, here is {here[name] or 'none'}"
        every = all(any(c.runs_on(capability, driver) for c in m.cubins) for m in self.modules)
        if not every and self.target.ptx > takes(driver):
            return f"the driver, for CUDA {version_text(driver)}, is older than its PTX"
        return None

    def restore(self, read: Callable[[], Plan], callbacks: Callbacks | None = None) -> CudaProgram:
        """The program of this code."""
        assert self.place is not None
        return self.place.restored(self, read(), callbacks)

    def pack(self) -> bytes:
        data = {
            "interface": self.interface,
            "target": astuple(self.target),
            "strict": self.strict,
            "parameters": [repr(t) for t in self.parameters],
            "modules": [[one.ptx, [astuple(c) for c in one.cubins]] for one in self.modules],
            "kernels": [[m, *_launches(text), facts_data(f)] for m, text, f in self.kernels],
            "codes": self.codes,
            "routines": self.routines,
            "glue": self.glue,
        }
        packed: bytes = msgpack.packb(data)
        return packed

    def fill(self, kernels: Kernels, plan: Plan) -> None:
        """Have the kernels of a plan found there, by this code alone."""
        from tenfold.backends.cuda.run.kernels import odd_buffers

        wanted = routines_of(plan, self.target)
        digests = {key: _digest(routine, self.target) for key, routine in wanted.items()}
        if digests != {key: digest for key, digest, _ in self.routines}:
            bad("its routines are not those of this Tenfold")
        calls = odd_buffers(plan)
        if len(calls) != len(self.codes):
            bad("its code is of another plan")
        loaded = kernels.device.load(self.modules)
        for (call, odd), number in zip(calls.items(), self.codes, strict=True):
            module, text, facts = self.kernels[number]
            if not facts.hold(call.sizes):
                bad("its code is for other sizes")
            kernels.add(call, odd, text, facts, loaded[module], self.modules[module])
        for key, _, module in self.routines:
            kernels.add_routine(key, loaded[module])
        for key, module in self.glue:
            kernels.add_glue(key, loaded[module])


def _launches(text: KernelText) -> tuple[Any, ...]:
    rows = [[o.name, o.blocks, o.threads, [astuple(g) for g in o.given], o.cluster]
            for o in text.launches]  # fmt: skip
    written = [text.fragment.declarations, text.fragment.body, sorted(text.maths)]
    return rows, text.partial, written if text.fragment.body else None


def read_code(raw: bytes | memoryview, place: Place) -> CudaCode:
    """The code in these bytes. What is in its modules is taken on trust; the rest is checked."""
    data = unpack(raw)
    try:
        target = CudaTarget(*data["target"])
        names = dict[int, list[str]]()
        for module, launches, *_ in data["kernels"]:
            names.setdefault(module, []).append(launches[0][0])
        made = tuple(
            ModuleCode(target, "", str(ptx), [Cubin(*one) for one in cubins], names.get(n, ()))
            for n, (ptx, cubins) in enumerate(data["modules"])
        )
        kernels = tuple(
            (within(module, made), _text(launches, partial, written), read_facts(facts))
            for module, launches, partial, written, facts in data["kernels"]
        )
        return CudaCode(
            target,
            bool(data["strict"]),
            tuple(parse_type(t) for t in data["parameters"]),
            made,
            kernels,
            tuple(within(number, kernels) for number in data["codes"]),
            tuple((str(k), str(d), within(m, made)) for k, d, m in data["routines"]),
            tuple((str(k), within(m, made)) for k, m in data["glue"]),
            place,
            int(data["interface"]),
        )
    except PlanError:
        raise
    except Exception as error:  # whatever malformed data makes of reading it
        bad(f"malformed code: {error!r}")


def _text(launches: Any, partial: int, written: Any) -> KernelText:
    """A kernel, with its LLVM IR where that was kept."""
    made = tuple(
        Launch(str(name), int(blocks), int(threads), tuple(Given(*g) for g in given), int(cluster))
        for name, blocks, threads, given, cluster in launches
    )
    if not made:
        bad("malformed code: a kernel without functions")
    declarations, body, maths = written or ((), "", ())
    fragment = Fragment(tuple(map(str, declarations)), str(body))
    return KernelText(fragment, frozenset(tuple(one) for one in maths), made, int(partial))


# What is kept of a program.


def routines_of(plan: Plan, target: CudaTarget) -> dict[str, GpuRoutine]:
    """The routines of our own that a plan calls on a device, by their keys: those for arrays that
    begin at multiples of 16 bytes, and for others."""
    from tenfold.backends.cuda.run.record import routine_for
    from tenfold.plan import RoutineStep

    found = {}
    for one in plan.every:
        called = [step for step in one.steps if isinstance(step, RoutineStep)]
        for step in called:
            for aligned in (True, False):
                routine = routine_for(one, step, target, aligned)
                if routine is not None and routine.key:
                    found[routine.key] = routine
    return found


def _digest(routine: GpuRoutine, target: CudaTarget) -> str:
    text = join([routine.text(target)])
    return sha256(repr((text, [one.function for one in routine.functions])).encode()).hexdigest()


def code_for(plan: Plan, target: CudaTarget, strict: bool) -> CudaCode:
    """The code of a plan for a chip; there need be none."""
    from tenfold.backends.cuda.run.kernels import prepared

    texts = prepared(plan, target, strict)
    distinct = {text.name: text for text, _ in texts.values()}
    return _code(plan, target, strict, texts, modules(list(distinct.values()), target))


def code_of(program: CudaProgram) -> CudaCode:
    """The code of a program: its modules as they were made, unless they hold others' kernels."""
    texts = {call: (one.code.text, one.code.facts) for call, one in program.code.items()}
    names = {text.name for text, _ in texts.values()}
    held = dict.fromkeys(one.code.module for one in program.code.values())
    made = [module for module in held if module.kernels <= names]
    there = {name for module in made for name in module.kernels}
    alone = {text.name: text for text, _ in texts.values() if text.name not in there}
    made += modules(list(alone.values()), program.target)
    return _code(program.plan, program.target, program.strict, texts, made)


Texts = Mapping[SizedKernel, tuple[KernelText, Facts]]


def _code(
    plan: Plan, target: CudaTarget, strict: bool, texts: Texts, made: list[ModuleCode]
) -> CudaCode:
    place = {name: n for n, one in enumerate(made) for name in one.kernels}
    inner = _inner(plan)
    kernels: list[tuple[int, KernelText, Facts]] = []
    known: dict[tuple[int, bool], int] = {}
    codes = []
    for call, (text, facts) in texts.items():
        key = id(facts), call in inner
        if key not in known:
            known[key] = len(kernels)
            kept = text if call in inner else replace(text, fragment=Fragment((), ""))
            kernels.append((place[text.name], kept, facts))
        codes.append(known[key])
    routines, glue = [], []
    for name, routine in routines_of(plan, target).items():
        routines.append((name, _digest(routine, target), len(made)))
        made.append(shared_module(join([routine.text(target)]), target))
    for name, between in _glue(plan, target, texts).items():
        glue.append((name, len(made)))
        made.append(shared_module(between, target))
    assemble(made)
    parameters = tuple(p.type for p in plan.graph.parameters)
    return CudaCode(target, strict, parameters, tuple(made), tuple(kernels), tuple(codes),
                    tuple(routines), tuple(glue))  # fmt: skip


def _inner(plan: Plan) -> set[SizedKernel]:
    """The kernels of loops and branches: of these the text is kept, since a loop may be one
    function made of them."""
    from tenfold.plan import KernelStep

    below = (one for one in plan.every if one is not plan)
    return {one.call(s) for one in below for s in one.steps if isinstance(s, KernelStep)}


def _glue(plan: Plan, target: CudaTarget, texts: Texts) -> dict[str, str]:
    from tenfold.backends.cuda.run.dry import glue_of
    from tenfold.backends.cuda.run.kernels import KernelCode, bound

    nothing = ModuleCode(target)
    bounds = {
        call: bound(KernelCode(text, facts, tuple(o.name for o in text.launches), nothing), call)
        for call, (text, facts) in texts.items()
    }
    return glue_of(plan, bounds, target)
