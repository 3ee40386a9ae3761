"""Kernels to object code: many in one module, several modules at once, equal kernels once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from tenfold.backends.cpu.emit.emit import KernelText, emit
from tenfold.backends.cpu.entry.abi import STOPPED
from tenfold.backends.cpu.link.archive import pack
from tenfold.backends.cpu.schedule.fixed import choose_fixed
from tenfold.backends.cpu.schedule.schedule import Schedule
from tenfold.backends.llvm.assemble import Assembly
from tenfold.backends.llvm.functions import definitions
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.text import Fragment, join
from tenfold.frozen import frozen
from tenfold.kernel.ir.kernel import Kernel
from tenfold.kernel.ir.number import Facts
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.kernel.passes.legalise import legalise

# Lines of a module, at least; the last has what is left. A module costs 2 ms whatever is in it, as
# much as 30 lines do; several can be compiled at once. How they are parted depends on the kernels
# alone, not on how many processors there happen to be: the same kernels give the same bytes.
BATCH = 150


@frozen
class CompiledKernel:
    """What a caller of a compiled kernel has to know."""

    name: str
    schedule: Schedule
    polls: bool  # whether it looks for signals, and may stop
    facts: Facts = field(compare=False)  # it is for all sizes of which these hold

    def extent(self, call: SizedKernel) -> int:
        """Of the outer axis, in a call: the whole kernel is [0, extent)."""
        if self.schedule.outer is None:
            return 1
        return call.size(call.kernel.axes[self.schedule.outer].extent)


@frozen
class Module:
    """Object code of some kernels: position-independent, free of addresses."""

    data: bytes  # an object, or an archive of several
    kernels: tuple[CompiledKernel, ...]  # for each call that was asked for


def prepare(
    call: SizedKernel, target: LLVMTarget, strict: bool = False, schedule: Schedule | None = None
) -> tuple[KernelText, CompiledKernel]:
    """A kernel as text, for some sizes and all that are like them; named by its text. The schedule
    is chosen by what is to be computed, the text is of the legal kernel; `strict` keeps products
    and sums apart."""
    facts = Facts(call.sizes)
    kernel = call.numbered(facts)
    if schedule is None:
        kernel, schedule = choose_fixed(kernel, target)
    legal = legalise(kernel, fused=target.fma and not strict)
    code = emit(legal, schedule, target, facts)
    polls = f"ret i32 {STOPPED}" in code.fragment.body
    return code, CompiledKernel(code.name, schedule, polls, facts)


class Compilation:
    """Kernels on their way to one object, each text once: compiled while more are added."""

    def __init__(self, target: LLVMTarget, strict: bool = False) -> None:
        self._target, self._strict = target, strict
        self._assembly = Assembly(target)
        self._batch: list[KernelText] = []
        self._made: list[CompiledKernel] = []
        self._known: dict[Kernel, list[CompiledKernel]] = {}
        self._names: set[str] = set()
        self._parts: list[list[str]] = []  # the names in each object
        self.objects: tuple[tuple[list[str], bytes], ...] = ()  # when it is finished

    def add(self, call: SizedKernel) -> CompiledKernel:
        """One more; what is known of its code before that is there."""
        code, found = self.prepare(call)
        self.include(code, found)
        return found

    def prepare(self, call: SizedKernel) -> tuple[KernelText | None, CompiledKernel]:
        """A kernel as text, unless it is one that was prepared before; it is not yet part of the
        object."""
        others = self._known.setdefault(call.kernel, [])
        found = next((one for one in others if one.facts.hold(call.sizes)), None)
        if found is not None:
            return None, found
        code, found = prepare(call, self._target, self._strict)
        others.append(found)
        return code, found

    def include(self, code: KernelText | None, compiled: CompiledKernel) -> bool:
        """Compile a text that was prepared, unless it is known: then there is none, or one of
        its name."""
        self._made.append(compiled)
        if code is None or code.name in self._names:
            return False
        self._names.add(code.name)
        self._batch.append(code)
        if sum(code.size for code in self._batch) >= BATCH:
            self._flush()
        return True

    def begin(self) -> None:
        """Wait for no more texts."""
        if self._batch:
            self._flush()

    def finish(self, fragments: Sequence[Fragment] = ()) -> Module:
        """The object, with further text beside the kernels."""
        if self._batch or fragments or not self._names:
            self._flush(fragments)
        objects = self._assembly.finish()
        self.objects = tuple(zip(self._parts, objects, strict=True))
        return Module(pack(objects), tuple(self._made))

    def drop(self) -> None:
        """Compile no more of it."""
        self._assembly.drop()

    def _flush(self, fragments: Sequence[Fragment] = ()) -> None:
        self._assembly.add(module_text(self._batch, self._target, fragments))
        self._parts.append([code.name for code in self._batch])
        self._batch = []


def compile_kernels(
    calls: Iterable[SizedKernel],
    target: LLVMTarget,
    strict: bool = False,
    fragments: Sequence[Fragment] = (),
) -> Module:
    """One object of these kernels, each text once, and of further text beside them."""
    compilation = Compilation(target, strict)
    for call in calls:
        compilation.add(call)
    return compilation.finish(fragments)


def module_text(
    codes: Sequence[KernelText], target: LLVMTarget, fragments: Sequence[Fragment] = ()
) -> str:
    """The text of a module: kernels, the functions they call, and what is given beside."""
    needed = sorted(frozenset().union(*(code.maths for code in codes)))
    parts = [code.fragment for code in codes]
    return join([*parts, *definitions(needed, target), *fragments])
