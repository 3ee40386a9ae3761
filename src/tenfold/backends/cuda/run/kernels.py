"""The code of kernels on a device: compiled once for all sizes of which its facts hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold.backends.cuda.assemble import ModuleCode, modules, shared_module
from tenfold.backends.cuda.compile import prepare
from tenfold.backends.cuda.driver.device import Device, Module
from tenfold.backends.cuda.emit.function import Given, KernelText, Launch
from tenfold.backends.cuda.library.routine import GpuRoutine
from tenfold.backends.cuda.run.alignment import unaligned
from tenfold.backends.cuda.run.results import ResultMemory
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.text import join
from tenfold.frozen import frozen
from tenfold.kernel.ir.kernel import Kernel
from tenfold.kernel.ir.number import Facts
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.locks import Lock
from tenfold.plan import KernelStep, Plan
from tenfold.stats import count

Address = int
Odd = frozenset[int]  # buffers that may begin at no multiple of 16 bytes


@frozen(eq=False)
class KernelCode:
    """A kernel's functions on a device, for all sizes of which the facts hold."""

    text: KernelText
    facts: Facts
    functions: tuple[Any, ...]
    module: ModuleCode


@frozen(eq=False)
class BoundLaunch:
    """A function with all that its sizes fix: blocks, and the words of numbers."""

    function: Any
    blocks: int
    threads: int
    given: tuple[Given, ...]
    words: tuple[bytes | None, ...]  # None for what a call gives


@frozen(eq=False)
class BoundKernel:
    """A kernel as it is launched with some sizes."""

    code: KernelCode
    launches: tuple[BoundLaunch, ...]
    partial: int  # bytes that its functions leave each other

    def words(
        self,
        launch: BoundLaunch,
        buffers: Sequence[Address],
        params: Sequence[bytes],
        partial: Address,
        fault: Address,
    ) -> list[bytes | Address]:
        """What a function is given."""
        out: list[bytes | Address] = []
        for given, word in zip(launch.given, launch.words, strict=True):
            if word is not None:
                out.append(word)
            elif given.kind == "buffer":
                out.append(buffers[given.number])
            elif given.kind == "param":
                raw = params[given.number]
                size = len(raw) // 2 if self._complex(given.number) else len(raw)
                out.append(raw[given.part * size : (given.part + 1) * size])
            else:
                out.append(partial if given.kind == "partial" else fault)
        return out

    def _complex(self, number: int) -> bool:
        return any(g.kind == "param" and g.number == number and g.part for one in self.launches
                   for g in one.given)  # fmt: skip


class Kernels:
    """The kernels of one device, each text once."""

    def __init__(self, device: Device, strict: bool, target: CudaTarget | None = None) -> None:
        self.device, self._strict = device, strict
        self.target = target or device.target
        self._known: dict[tuple[Kernel, Odd], list[KernelCode]] = {}
        self._routines: dict[str, Module] = {}
        self._glue: dict[str, Module] = {}
        self._lock = Lock()
        self.judged: set[str] = set()
        self.results = ResultMemory(device.result_block)

    def find(self, plan: Plan) -> dict[SizedKernel, BoundKernel]:
        """The kernels that a plan calls; those that are new are compiled."""
        calls = odd_buffers(plan)
        found: dict[SizedKernel, KernelCode] = {}
        with self._lock:
            for call, odd in calls.items():
                code = self._at_hand(call, odd)
                if code is not None:
                    found[call] = code
            left = {call: odd for call, odd in calls.items() if call not in found}
            made = self._compiled(_prepared(left, self.target, self._strict), calls)
        return {call: bound(found.get(call) or made[call], call) for call in calls}

    def routine(self, routine: GpuRoutine) -> Module:
        """The functions of a routine."""
        with self._lock:
            if routine.key not in self._routines:
                code = shared_module(join([routine.text(self.target)]), self.target)
                self._routines[routine.key] = self.device.load([code])[0]
            return self._routines[routine.key]

    def glue(self, key: str, text: Callable[[CudaTarget], str]) -> Module:
        """The functions between kernels, by their name."""
        with self._lock:
            if key not in self._glue:
                code = shared_module(text(self.target), self.target)
                self._glue[key] = self.device.load([code])[0]
            return self._glue[key]

    # Code that was made elsewhere.

    def add(
        self,
        call: SizedKernel,
        odd: Odd,
        text: KernelText,
        facts: Facts,
        module: Module,
        code: ModuleCode,
    ) -> None:
        """Have a kernel found whose code is loaded."""
        known = self._known.setdefault((call.kernel, odd), [])
        if not any(one.facts is facts for one in known):
            functions = tuple(module.function(one.name) for one in text.launches)
            known.append(KernelCode(text, facts, functions, code))

    def add_routine(self, key: str, module: Module) -> None:
        """Have a routine found whose code is loaded."""
        self._routines[key] = module

    def add_glue(self, key: str, module: Module) -> None:
        """Have functions between kernels found whose code is loaded."""
        self._glue[key] = module

    def _at_hand(self, call: SizedKernel, odd: Odd) -> KernelCode | None:
        codes = self._known.get((call.kernel, odd), ())
        return next((code for code in codes if code.facts.hold(call.sizes)), None)

    def _compiled(
        self, new: dict[SizedKernel, tuple[KernelText, Facts]], odd: dict[SizedKernel, Odd]
    ) -> dict[SizedKernel, KernelCode]:
        if not new:
            return {}
        texts = {text.name: text for text, _ in new.values()}
        parts = modules(list(texts.values()), self.target)
        loaded = self.device.load(parts)
        count("kernels_compiled", len(texts))
        found = {
            name: (module, code)
            for module, code in zip(loaded, parts, strict=True)
            for name in code.kernels
        }
        made: dict[int, KernelCode] = {}
        out = {}
        for call, pair in new.items():
            code = made.get(id(pair))
            if code is None:
                text, facts = pair
                module, source = found[text.name]
                functions = tuple(module.function(one.name) for one in text.launches)
                code = made[id(pair)] = KernelCode(text, facts, functions, source)
                self._known.setdefault((call.kernel, odd[call]), []).append(code)
            out[call] = code
        return out


def _prepared(
    calls: dict[SizedKernel, Odd], target: CudaTarget, strict: bool
) -> dict[SizedKernel, tuple[KernelText, Facts]]:
    """Kernels as text, one for all calls that it serves."""
    found: dict[SizedKernel, tuple[KernelText, Facts]] = {}
    alike: dict[tuple[Kernel, Odd], list[tuple[KernelText, Facts]]] = {}
    for call, odd in calls.items():
        made = alike.setdefault((call.kernel, odd), [])
        one = next((pair for pair in made if pair[1].hold(call.sizes)), None)
        if one is None:
            one = prepare(call, target, strict, odd)
            made.append(one)
        found[call] = one
    return found


def prepared(
    plan: Plan, target: CudaTarget, strict: bool
) -> dict[SizedKernel, tuple[KernelText, Facts]]:
    """The kernels of a plan as text, in the order of `odd_buffers`."""
    return _prepared(odd_buffers(plan), target, strict)


def odd_buffers(plan: Plan) -> dict[SizedKernel, Odd]:
    """The distinct calls of a plan, with the buffers that may begin at odd places in any of them:
    one code serves all calls that are equal."""
    rows = unaligned(plan)
    found: dict[SizedKernel, Odd] = {}
    for one in plan.every:
        for step, odd in zip(one.steps, rows[id(one)], strict=True):
            if isinstance(step, KernelStep):
                call = one.call(step)
                found[call] = found.get(call, frozenset()) | odd
    return found


def bound(code: KernelCode, call: SizedKernel) -> BoundKernel:
    """A kernel with some sizes."""
    launches = code.text.launches
    wanted = sorted(
        {one.blocks for one in launches if one.blocks >= 0}
        | {g.number for one in launches for g in one.given if g.kind == "number"}
        | ({code.text.partial} if code.text.partial >= 0 else set())
    )
    values = code.facts.at(call.sizes, tuple(wanted))
    assert values is not None, "the code is for other sizes"
    numbers = dict(zip(wanted, values, strict=True))
    made = tuple(
        BoundLaunch(
            function,
            _counted(one.blocks, numbers),
            one.threads,
            one.given,
            tuple(_number(g, numbers) for g in one.given),
        )
        for one, function in zip(launches, code.functions, strict=True)
    )
    return BoundKernel(code, made, _counted(code.text.partial, numbers))


def _counted(place: int, numbers: dict[int, int]) -> int:
    return numbers[place] if place >= 0 else -1 - place


def _number(given: Given, numbers: dict[int, int]) -> bytes | None:
    if given.kind not in ("number", "known"):
        return None
    value = numbers[given.number] if given.kind == "number" else given.number
    return (value & (1 << 8 * given.part) - 1).to_bytes(given.part, "little")


def launches_of(kernel: BoundKernel) -> tuple[Launch, ...]:
    """How a kernel is launched, for whoever explains it."""
    return kernel.code.text.launches
