"""Products of matrices: by tiles, or of a matrix and a vector, unless they are complex. Which way
is a function of shapes and dtypes alone."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.matrices import MatrixProduct, matrices_of
from tenfold.backends.webgpu.library.product_tiles import PARTS, tiles_routine
from tenfold.backends.webgpu.library.routine import Given, Routine
from tenfold.backends.webgpu.library.vectors import vector_routine
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.types import TensorType

_NARROW = ("i8", "u8", "i16")


def product_routine(
    types: Sequence[TensorType], given: Given, target: WebGPUTarget
) -> Routine | None:
    """The routine of a contraction that is laid out as libraries have it."""
    p = matrices_of(types, given)
    if p is None or not has_product(p, target):
        return None
    if min(p.m, p.n) == 1 and p.dtype not in PARTS:
        return vector_routine(p)
    return tiles_routine(p, target)


def has_product(p: MatrixProduct, target: WebGPUTarget) -> bool:
    """Whether matrices of these dtypes are multiplied: of one dtype that the adapter computes with,
    or of narrow integers that are added up in 32 bits."""
    a, b, made = p.dtypes
    if made in ("i32", "u32") and a in _NARROW and b in _NARROW:
        return True
    known = ["f32", "f16", "bf16", "i32", "u32", "c64"]
    known += [*(["f64", "c128"] if target.f64 else []), *(["i64", "u64"] if target.i64 else [])]
    return a == b == made and made in known
