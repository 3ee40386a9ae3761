"""Kernels in this process: each distinct one is compiled once and shared by all who call it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from tenfold.backends.cpu.library.blas import blas
from tenfold.backends.cpu.link.loader import Image, load
from tenfold.backends.cpu.run.fixed import STEPS, fixed
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.kernel import Kernel
from tenfold.locks import Lock, once
from tenfold.stats import count, timed

if TYPE_CHECKING:
    from tenfold.backends.cpu.link.compile import CompiledKernel, Module


@dataclass(eq=False)
class KernelCode:
    """A compiled kernel in memory; the image, which others may share, lives as long as it does."""

    compiled: CompiledKernel
    image: Image
    module: Module | None = None  # the object code it came in, to be written to a file


_known: WeakValueDictionary[tuple[str, str, bool], KernelCode] = WeakValueDictionary()
_lock = Lock()


def obtain(
    kernels: Sequence[Kernel], target: LLVMTarget, strict: bool
) -> Mapping[Kernel, KernelCode]:
    """The code of these kernels; those that are new are compiled, all in one module."""
    found: dict[Kernel, KernelCode] = {}
    with _lock:
        names = {kernel: (kernel.digest, target.digest, strict) for kernel in kernels}
        missing = []
        for kernel, name in names.items():
            code = _known.get(name)
            if code is None:
                missing.append(kernel)
            else:
                found[kernel] = code
        count("kernels_reused", len(found))
        if missing:
            from tenfold.backends.cpu.link.compile import compile_kernels

            with timed("compile"):
                module = compile_kernels(missing, target, strict)
            with timed("load"):
                image = load([module.data], [made.name for made in module.kernels])
            for kernel, made in zip(missing, module.kernels, strict=True):
                code = found[kernel] = KernelCode(made, image, module)
                _known[names[kernel]] = code
            count("kernels_compiled", len(missing))
    return found


def polling(code: Mapping[Kernel, KernelCode]) -> set[Kernel]:
    """Those kernels that look for signals."""
    return {kernel for kernel, one in code.items() if one.compiled.polls}


@once
def judged_kernels(target: LLVMTarget, strict: bool) -> set[str]:
    """The names of kernels that were judged on drawn values in this process, with this code."""
    return set()


@once
def routine_image(name: str, target: LLVMTarget) -> Image:
    """The sort that has this name."""
    return load([fixed(name, target)], [name])


@once
def steps_image(target: LLVMTarget, products: bool) -> Image:
    """The function that carries out the steps of any plan."""
    library = blas() if products else None
    # Without the library no plan has a product of its: any address will do.
    given = {f"tn_{x}gemm": id(None) for x in "sdcz"} if library is None else library.symbols
    return load([fixed(STEPS, target)], ["tn_steps"], given)
