"""Code for processors that this machine is not: of every routine, of what is the same for all
plans, and of kernels. It has nothing of another processor's, is assembled, and is linked."""

from __future__ import annotations

import pytest

from tenfold.backends.cpu.library import routine
from tenfold.backends.cpu.library.lapack.routines import _BY_NAME
from tenfold.backends.cpu.library.product import (
    NARROW_PRODUCT,
    PAIR_PRODUCT,
    PANEL_PRODUCT,
    VECTOR_PRODUCT,
    product_name,
)
from tenfold.backends.cpu.link.compile import module_text, prepare
from tenfold.backends.cpu.link.elf import read
from tenfold.backends.cpu.link.link import link
from tenfold.backends.cpu.run.fixed import EXPORTS, TEXTS
from tenfold.backends.cpu.target import host_target
from tenfold.backends.llvm.assemble import assemble
from tenfold.backends.llvm.target import LLVMTarget, target_with
from tenfold.graph.op import PRODUCT
from tenfold.kernel import Builder
from tenfold.kernel.ir.sized import SizedKernel
from tests.backends.cpu.running import mapped
from tests.backends.cpu.test_random import Draw

HOST = host_target()
# What intrinsics of the others begin with.
OTHERS = {"aarch64": "llvm.x86", "x86_64": "llvm.aarch64"}
TARGETS = [
    target_with(f"{arch}-unknown-linux-gnu", (), HOST.llvmlite)
    for arch in OTHERS
    if arch != HOST.arch
]
each_target = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.arch)

# Of each routine some dtypes that its text differs for.
DTYPES: dict[tuple[str, ...], tuple[str, ...]] = {
    (PRODUCT, VECTOR_PRODUCT): ("f32", "c128"),
    (PANEL_PRODUCT,): ("f64", "u32", "i64"),
    (PAIR_PRODUCT,): ("f32",),
    (NARROW_PRODUCT,): ("i8xi8", "u8xi8", "i16xi16"),
    routine._SORTS: ("f16", "f64", "i8", "u64", "bool"),
    (*routine._TRANSFORMS, *routine._COLUMNS): ("f32",),
    routine._FOLDS: ("bf16", "i32"),
    (routine._GREATEST,): ("f32", "i16"),
    (routine._REACH,): ("i32",),
    (routine.PANELS, routine.DIRECT): ("f32", "u64"),
    tuple(name for name in _BY_NAME if name.startswith("small_")): ("f32",),
    tuple(name for name in _BY_NAME if not name.startswith("small_")): ("f32", "c128"),
}
SYMBOLS = [
    product_name(kind, dtype) if kind in routine.PRODUCTS else f"tn_{kind}_{dtype}"
    for kinds, dtypes in DTYPES.items()
    for kind in kinds
    for dtype in dtypes
]


def linked(text: str, target: LLVMTarget, *names: str) -> None:
    """Hold a text to be for a target alone, with these functions."""
    assert OTHERS[target.arch] not in text
    exports, _, _ = link([read(assemble(text, target))], lambda name: 0)
    assert exports.keys() >= set(names)


@each_target
def test_every_routine(target: LLVMTarget) -> None:
    for symbol in SYMBOLS:
        linked(routine.routine_text(symbol, target), target, symbol)


@each_target
@pytest.mark.parametrize("part", TEXTS)
def test_what_is_the_same_for_all_plans(part: str, target: LLVMTarget) -> None:
    linked(TEXTS[part](target), target, *EXPORTS[part])


@each_target
def test_kernels(target: LLVMTarget) -> None:
    """Drawn ones, functions, and one that has more to store than caches hold."""
    kernels = [Draw(seed).kernel()[0] for seed in range(40)]
    kernels += [mapped(op, "f32", "f32", 1, (70, 300)) for op in ("exp", "sin", "tanh", "log")]
    large = Builder()
    at = large.axis(1 << 24)
    read_, write = large.buffer("f32", 1 << 24), large.buffer("f32", 1 << 24, "write")
    large.store(write, at, large.op("neg", "f32", large.load(read_, at)))
    kernels.append(large.finish())
    codes = [prepare(SizedKernel(kernel), target)[0] for kernel in kernels]
    text = module_text(list({code.name: code for code in codes}.values()), target)
    linked(text, target, *(code.name for code in codes))
    assert ("nontemporal" in text) == (target.arch == "x86_64")
