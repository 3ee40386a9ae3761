"""Routines of nodes: which function carries a node out, and what it is given.

    i32 tn_solve_f64(ptr buffers, ptr params, i64 low, i64 high)

A routine is called as a kernel is: `buffers` has the addresses of the node's inputs, of its results
and of scratch memory, then of what is polled; `params` has numbers that hang on the node's types;
`low` to `high` are its parts, lines or matrices. So one function serves every plan and every size.
It answers 0, STOPPED, or UNSOLVED for what it leaves to the evaluator: a singular matrix, say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenfold.backends.cpu.library.product import NARROW_PRODUCT, PRODUCTS
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.frozen import frozen
from tenfold.graph.op import CONVOLUTION, PRODUCT
from tenfold.types import SHORT, TensorType

Given = Mapping[str, Any]

UNSOLVED = 1
_SORTS = ("sort", "argsort")
_LAPACK = ("cholesky", "det", "eig", "eigh", "inv", "lu", "qr", "slogdet", "solve", "svd",
           "triangular_solve")  # fmt: skip
_FACTORINGS = (*_LAPACK, "eigvals", "eigvalsh", "r", "svdvals")  # with those of some results
_FOURIER = ("fft", "rfft", "irfft")
_TRANSFORMS = ("fft", "ifft", "rfft_n_even", "rfft_n_odd", "irfft")  # as NumPy names them
_COLUMNS = ("columns_fft", "columns_ifft")
_RUNNING = ("cumsum", "cumprod", "cummax", "cummin")
_FOLDS = tuple(f"{name}{way}" for name in _RUNNING for way in ("", "_reverse"))
_FEW, _GREATEST = "top_few", "greatest"
_REACH = "reach"
PANELS, DIRECT = "panels", "direct"  # of convolutions
ROUTINES = frozenset((*_SORTS, *_LAPACK, *_FOURIER, *_RUNNING, _FEW, _REACH, CONVOLUTION))


@frozen
class NodeRoutine:
    """The call of a routine: its function, its parameters, how many parts there are, the bytes of
    its scratch memory, about how many nanoseconds it takes, whether it may leave it unsolved."""

    symbol: str
    params: tuple[int, ...]
    parts: int
    scratch: int
    weight: int
    leaves: bool = False


def routine_of(name: str, types: Sequence[TensorType], given: Given) -> NodeRoutine | None:
    """The routine of a node with inputs of these types, or None where there is none."""
    if any(not type.size for type in types):
        return None
    if name in _SORTS:
        return _sort(name, types[0], given)
    if name in _LAPACK:
        from tenfold.backends.cpu.library.lapack.routines import lapack_routine  # few plans solve

        return lapack_routine(name, types, given)
    if name in _FOURIER:
        from tenfold.backends.cpu.library.fourier import fourier_routine  # few plans transform

        return fourier_routine(name, types[0], given)
    if name in _RUNNING:
        from tenfold.backends.cpu.library.running import running_routine

        return running_routine(name, types[0], given)
    if name == _FEW:
        from tenfold.backends.cpu.library.greatest import greatest_routine

        return greatest_routine(types[0], given["k"])
    if name == _REACH:
        from tenfold.backends.cpu.library.reach import reach_routine

        return reach_routine(types, given)
    if name == CONVOLUTION:
        from tenfold.backends.cpu.library.conv.sizes import convolution_routine

        return convolution_routine(types, given)
    return None


def routine_symbol(name: str, types: Sequence[TensorType], given: Given, target: LLVMTarget) -> str:
    """The name of the function that carries such a node out."""
    if name == PRODUCT:
        from tenfold.backends.cpu.library.product.tiles import product_symbol

        return product_symbol(types, given, target)
    found = routine_of(name, types, given)
    assert found is not None
    return found.symbol


def _sort(name: str, type: TensorType, given: Given) -> NodeRoutine | None:
    from tenfold.backends.cpu.library.sort import sort_name
    from tenfold.backends.cpu.library.sort.sort import scratch_bytes  # few plans sort

    length, dtype = type.shape[-1], SHORT[type.dtype]
    scratch = scratch_bytes(name, dtype, length)
    if scratch is None or given["axis"] != type.rank - 1:
        return None
    lines = type.size // length
    return NodeRoutine(sort_name(name, dtype), (length, 0), lines, scratch, 20 * type.size)


def routine_text(symbol: str, target: LLVMTarget) -> str:
    """The module of the routine that has this name."""
    kind, dtype = _parts(symbol)
    if kind in PRODUCTS:
        from tenfold.backends.cpu.library.product.text import product_text

        return product_text(kind, dtype, target)
    if kind in _SORTS:
        from tenfold.backends.cpu.library.sort.sort import sort_text

        return sort_text(symbol, target)
    if kind in _TRANSFORMS:
        from tenfold.backends.cpu.library.fourier import fourier_text

        return fourier_text(kind, dtype)
    if kind in _COLUMNS:
        from tenfold.backends.cpu.library.fourier_columns import columns_text

        return columns_text(symbol, dtype, kind == "columns_ifft", target)
    if kind in _FOLDS:
        from tenfold.backends.cpu.library.running import running_text

        return running_text(kind, dtype, target)
    if kind == _GREATEST:
        from tenfold.backends.cpu.library.greatest import greatest_text

        return greatest_text(dtype, target)
    if kind == _REACH:
        from tenfold.backends.cpu.library.reach import reach_text

        return reach_text(target)
    if kind == PANELS:
        from tenfold.backends.cpu.library.conv.chunks import panels_text

        return panels_text(symbol, target)
    if kind == DIRECT:
        from tenfold.backends.cpu.library.conv.direct import direct_text

        return direct_text(symbol, target)
    from tenfold.backends.cpu.library.lapack.routines import lapack_text

    return lapack_text(kind, dtype, target)


def routine_imports(symbol: str) -> Mapping[str, int] | None:
    """The addresses that a routine calls, or None where they are not to be found here."""
    kind, dtype = _parts(symbol)
    if kind in PRODUCTS and kind != NARROW_PRODUCT:
        from tenfold.backends.cpu.library.blas import blas
        from tenfold.ops.algebra.products import WHOLE

        if dtype in WHOLE:
            return {}
        library = blas()
        return None if library is None else library.symbols
    if kind in _TRANSFORMS:
        from tenfold.backends.cpu.library.fourier import fourier_loops

        return fourier_loops(kind, dtype)
    if kind not in _FACTORINGS:
        return {}
    from tenfold.backends.cpu.library.lapack.symbols import lapack_symbols

    return lapack_symbols()


def _parts(symbol: str) -> tuple[str, str]:
    """The kind of a routine and its dtype, from its name."""
    kind, _, dtype = symbol.removeprefix("tn_").rpartition("_")
    return kind, dtype
