"""Kernels in this process: each distinct one is compiled once and shared by all who call it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold.backends.cpu.library.blas import blas
from tenfold.backends.cpu.link.loader import Image, load
from tenfold.backends.cpu.run.fixed import STEPS, fixed
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.kernel.ir.sized import SizedKernel
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

    def place(self, call: SizedKernel) -> tuple[int, int]:
        """Its address, and the extent of its outer axis in a call."""
        return self.image.address(self.compiled.name), self.compiled.extent(call)


_MOST = 4096  # kernels that are kept without a plan that calls them
_known: dict[tuple[str, str, bool], list[KernelCode]] = {}  # codes of one kernel for other sizes
_lock = Lock()


def obtain(
    calls: Sequence[SizedKernel], target: LLVMTarget, strict: bool
) -> Mapping[SizedKernel, KernelCode]:
    """The code of these kernels for their sizes; what is new is compiled, all in one module."""
    found: dict[SizedKernel, KernelCode] = {}
    with _lock:
        missing = []
        for call in calls:
            name = call.kernel.digest, target.digest, strict
            codes = _known.pop(name, [])
            _known[name] = codes  # the last to be dropped
            code = next((c for c in codes if c.compiled.facts.hold(call.sizes)), None)
            if code is None:
                missing.append(call)
                continue
            found[call] = code
            if code is not codes[0]:  # the next sizes are likely to be like these
                codes.remove(code)
                codes.insert(0, code)
        count("kernels_reused", len({id(code) for code in found.values()}))
        if missing:
            from tenfold.backends.cpu.link.compile import compile_kernels

            with timed("compile"):
                module = compile_kernels(missing, target, strict)
            made = {one.name: one for one in module.kernels}
            with timed("load"):
                image = load([module.data], list(made))
            fresh = {id(one): KernelCode(one, image, module) for one in module.kernels}
            for call, one in zip(missing, module.kernels, strict=True):
                code = found[call] = fresh[id(one)]
                codes = _known[call.kernel.digest, target.digest, strict]
                if code not in codes:
                    codes.append(code)
            count("kernels_compiled", len(made))
        while len(_known) > _MOST:
            del _known[next(iter(_known))]
    return found


def polling(code: Mapping[SizedKernel, KernelCode]) -> set[SizedKernel]:
    """Those kernels that look for signals."""
    return {call for call, one in code.items() if one.compiled.polls}


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
