"""Conversions between registers."""

from __future__ import annotations

from tenfold.backends.webgpu.wgsl.types import REGISTER, WIDTH, floating, narrowed
from tenfold.backends.webgpu.wgsl.writer import Writer


def cast(w: Writer, source: str, dtype: str, x: str) -> str:
    """A value in another dtype; floats that are cast to integers are in range."""
    old, new = REGISTER[source], REGISTER[dtype]
    if dtype == "bool":
        return x if source == "bool" else f"(({x} & {old}(1)) != {old}(0))"
    if source == "bool":
        return f"select({new}(0), {new}(1), {x})"
    if floating(source):
        if floating(dtype):
            return x if old == new else f"{new}({w.kept(source, x)})"
        return narrowed(dtype, _whole(old, new, w.kept(source, x)))
    if floating(dtype):
        return f"{new}_of_{old}({x})" if WIDTH[source] == 64 else f"{new}({x})"
    return narrowed(dtype, resized(old, new, x))


def _whole(old: str, new: str, x: str) -> str:
    """A float in range as an integer."""
    return f"{new}_of_{old}({x})" if new in ("i64", "u64") else f"{new}({x})"


def resized(old: str, new: str, x: str) -> str:
    """An integer in another register: the low bits, or by its sign."""
    if old == new:
        return x
    if old[1:] == new[1:]:
        return f"bitcast<{new}>({x})"
    if (old, new) == ("i32", "i64"):
        # Mesa folds the cast into comparisons with 0, and then no number is negative.
        return f"(i64({x}) + i64(Z.x))"
    if old[0] == new[0]:
        return f"{new}({x})"
    return f"bitcast<{new}>({old[0]}{new[1:]}({x}))"


def bitcast(source: str, dtype: str, x: str) -> str:
    """The same bits in a dtype of the same size."""
    old, new = REGISTER[source], REGISTER[dtype]
    return narrowed(dtype, x if old == new else f"bitcast<{new}>({x})")
