"""Kernels to object code: many in one module, several modules at once, equal kernels once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenfold.backends.cpu.archive import pack
from tenfold.backends.cpu.assemble import assemble_all
from tenfold.backends.cpu.emit import Code, emit, outer_extent
from tenfold.backends.cpu.functions import definitions
from tenfold.backends.cpu.schedule import Schedule, choose
from tenfold.backends.cpu.target import Target
from tenfold.backends.cpu.text import Fragment, join
from tenfold.frozen import frozen
from tenfold.kernel.kernel import Kernel

# A module costs 2 ms whatever is in it: about what 30 lines cost.
BATCH = 250  # lines of a module, at least
MODULES = 4  # at most


@frozen
class Compiled:
    """What a caller of a compiled kernel has to know."""

    name: str
    schedule: Schedule
    extent: int  # of the outer axis: the whole kernel is [0, extent)
    outside: tuple[str, ...]  # functions of libm called lane by lane


@frozen
class Module:
    """Object code of some kernels: position-independent, free of addresses."""

    data: bytes  # an object, or an archive of several
    kernels: tuple[Compiled, ...]


def prepare(
    kernel: Kernel, target: Target, strict: bool = False, schedule: Schedule | None = None
) -> tuple[Code, Compiled]:
    """A kernel as text, named by its digest."""
    schedule = schedule or choose(kernel, target)
    code = emit(kernel, schedule, target, symbol(kernel, strict), strict)
    return code, Compiled(code.name, schedule, outer_extent(kernel, schedule), code.outside)


def symbol(kernel: Kernel, strict: bool = False) -> str:
    """The name of a kernel's function."""
    return f"tn_{'s' if strict else 'k'}{kernel.digest[:32]}"


def compile_kernels(
    kernels: Iterable[Kernel],
    target: Target,
    strict: bool = False,
    fragments: Sequence[Fragment] = (),
) -> Module:
    """One object of these kernels, equal ones once, and of further text beside them."""
    distinct = {symbol(kernel, strict): kernel for kernel in kernels}
    made = [prepare(kernel, target, strict) for kernel in distinct.values()]
    first, *others = batches([code for code, _ in made])
    texts = [module_text(first, target, fragments), *(module_text(b, target) for b in others)]
    return Module(
        pack(assemble_all(texts, target)),
        tuple(compiled for _, compiled in made),
    )


def batches(codes: Sequence[Code]) -> list[list[Code]]:
    """Kernels parted into modules of about equal length, by the kernels alone: not by how many
    processors there happen to be, so that the same kernels give the same bytes everywhere."""
    total = sum(code.size for code in codes)
    count = max(1, min(MODULES, len(codes), total // BATCH))
    parts: list[list[int]] = [[] for _ in range(count)]
    sizes = [0] * count
    for number in sorted(range(len(codes)), key=lambda n: -codes[n].size):
        least = sizes.index(min(sizes))
        parts[least].append(number)
        sizes[least] += codes[number].size
    return [[codes[n] for n in sorted(part)] for part in parts]


_made: dict[tuple[Target, str], tuple[Module, Compiled]] = {}


def compiled_once(
    kernels: Sequence[Kernel], target: Target, strict: bool = False
) -> list[tuple[Module, Compiled]]:
    """For each kernel the module that has it; what this process has not yet compiled goes into
    one new module."""
    names = [symbol(kernel, strict) for kernel in kernels]
    missing = {
        name: kernel
        for name, kernel in zip(names, kernels, strict=True)
        if (target, name) not in _made
    }
    if missing:
        module = compile_kernels(missing.values(), target, strict)
        for compiled in module.kernels:
            _made.setdefault((target, compiled.name), (module, compiled))
    return [_made[target, name] for name in names]


def module_text(codes: Sequence[Code], target: Target, fragments: Sequence[Fragment] = ()) -> str:
    """The text of a module: kernels, the functions they call, and what is given beside."""
    needed = sorted(frozenset().union(*(code.maths for code in codes)))
    parts = [code.fragment for code in codes]
    return join([*parts, *definitions(needed, target), *fragments])
