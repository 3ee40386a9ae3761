"""Kernels to object code: many in one module, several modules at once, equal kernels once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenfold.backends.cpu.emit.emit import KernelText, emit, outer_extent
from tenfold.backends.cpu.entry.abi import STOPPED
from tenfold.backends.cpu.link.archive import pack
from tenfold.backends.cpu.schedule.schedule import Schedule, choose
from tenfold.backends.llvm.assemble import Assembly
from tenfold.backends.llvm.functions import definitions
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.text import Fragment, join
from tenfold.frozen import frozen
from tenfold.kernel.ir.kernel import Kernel
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
    extent: int  # of the outer axis: the whole kernel is [0, extent)
    polls: bool  # whether it looks for signals, and may stop


@frozen
class Module:
    """Object code of some kernels: position-independent, free of addresses."""

    data: bytes  # an object, or an archive of several
    kernels: tuple[CompiledKernel, ...]


def prepare(
    kernel: Kernel, target: LLVMTarget, strict: bool = False, schedule: Schedule | None = None
) -> tuple[KernelText, CompiledKernel]:
    """A kernel as text, named by its digest. The schedule is chosen by what is to be computed,
    the text is of the legal kernel; `strict` keeps products and sums apart."""
    schedule = schedule or choose(kernel, target)
    legal = legalise(kernel, fused=target.fma and not strict)
    code = emit(legal, schedule, target, symbol(kernel, strict))
    extent, polls = outer_extent(kernel, schedule), f"ret i32 {STOPPED}" in code.fragment.body
    return code, CompiledKernel(code.name, schedule, extent, polls)


def symbol(kernel: Kernel, strict: bool = False) -> str:
    """The name of a kernel's function."""
    return f"tn_{'s' if strict else 'k'}{kernel.digest[:32]}"


def compile_kernels(
    kernels: Iterable[Kernel],
    target: LLVMTarget,
    strict: bool = False,
    fragments: Sequence[Fragment] = (),
) -> Module:
    """One object of these kernels, equal ones once, and of further text beside them."""
    assembly = Assembly(target)
    batch: list[KernelText] = []
    made: list[CompiledKernel] = []
    for kernel in {symbol(kernel, strict): kernel for kernel in kernels}.values():
        code, compiled = prepare(kernel, target, strict)
        made.append(compiled)
        batch.append(code)
        if sum(code.size for code in batch) >= BATCH:
            assembly.add(module_text(batch, target))
            batch = []
    if batch or fragments or not made:
        assembly.add(module_text(batch, target, fragments))
    return Module(pack(assembly.finish()), tuple(made))


def module_text(
    codes: Sequence[KernelText], target: LLVMTarget, fragments: Sequence[Fragment] = ()
) -> str:
    """The text of a module: kernels, the functions they call, and what is given beside."""
    needed = sorted(frozenset().union(*(code.maths for code in codes)))
    parts = [code.fragment for code in codes]
    return join([*parts, *definitions(needed, target), *fragments])
