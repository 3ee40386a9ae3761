"""Routines that solve: cholesky, solve, inv, triangular_solve, det, slogdet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenfold.backends.cpu.library.lapack.driver import ONE, ZERO, Driver
from tenfold.backends.cpu.library.lapack.form import BLOCK, MatrixForm, MatrixRoutine
from tenfold.backends.cpu.library.loops import each, when
from tenfold.backends.llvm.writer import float_text
from tenfold.types import TensorType

Types = Sequence[TensorType]
Given = Mapping[str, Any]

_BIAS = 1023  # of the exponent of a double


def _cholesky_form(types: Types, given: Given) -> MatrixForm:
    n = types[0].shape[-1]
    form = MatrixForm("cholesky", types[0], n * n * n // 3, n * n, n * n)
    form.sizes(n=n)
    form.letters(uplo="L")
    form.area("a", n * n)
    return form


def _cholesky(d: Driver) -> None:
    d.take("%x0", "%a", "%n", "%n")
    d.call("potrf", "%uplo.at", "%n.at", "%a", "%n.at", "%info", letters=1)
    d.unsolved_by_info()
    d.give_lower("%a", "%n", "%y0", "%n", "%n")


def _solve_form(types: Types, given: Given) -> MatrixForm:
    n, k = types[1].shape[-2:]
    form = MatrixForm("solve", types[0], n * n * (n + k), n * n, n * k, n * k)
    form.sizes(n=n, k=k)
    form.area("a", n * n)
    form.area("b", n * k)
    form.reals("pivots", n)
    return form


def _solve(d: Driver) -> None:
    d.take("%x0", "%a", "%n", "%n")
    d.take("%x1", "%b", "%n", "%k")
    d.call("gesv", "%n.at", "%k.at", "%a", "%n.at", "%pivots", "%b", "%n.at", "%info")
    d.unsolved_by_info()
    d.give("%b", "%y0", "%n", "%k")


def _inv_form(types: Types, given: Given) -> MatrixForm:
    n = types[0].shape[-1]
    form = MatrixForm("inv", types[0], 2 * n * n * n, n * n, n * n)
    form.sizes(n=n, whole=n * n, one=1)
    form.area("a", n * n)
    form.reals("pivots", n)
    form.workspace(BLOCK * n)
    return form


def _inv(d: Driver) -> None:
    """Row by row it is LAPACK's transposed one, and so is its inverse."""
    d.take("%x0", "%a", "%one", "%whole")
    d.call("getrf", "%n.at", "%n.at", "%a", "%n.at", "%pivots", "%info")
    d.unsolved_by_info()
    d.call("getri", "%n.at", "%a", "%n.at", "%pivots", "%work", "%lwork.at", "%info")
    d.unsolved_by_info()
    d.give("%a", "%y0", "%whole", "%one")


def _triangular_form(types: Types, given: Given) -> MatrixForm:
    n, k = types[1].shape[-2:]
    form = MatrixForm("triangular_solve", types[0], n * n * k // 2, n * n, n * k, n * k)
    form.sizes(n=n, k=k)
    form.letters(uplo="L" if given["lower"] else "U", trans="N", diag="U" if given["unit"] else "N")
    form.area("a", n * n)
    form.area("b", n * k)
    return form


def _triangular(d: Driver) -> None:
    # Where a right side is 0, LAPACK leaves rows out, and what is NaN in them.
    d.take("%x0", "%a", "%n", "%n")
    d.unsolved_unless_finite("%a", d.w.op("mul i64 %n, %n"))
    d.take("%x1", "%b", "%n", "%k")
    d.call(
        "trtrs", "%uplo.at", "%trans.at", "%diag.at", "%n.at", "%k.at", "%a", "%n.at", "%b",
        "%n.at", "%info", letters=3,
    )  # fmt: skip
    d.unsolved_by_info()
    d.unsolved_unless_finite("%b", d.w.op("mul i64 %n, %k"))
    d.give("%b", "%y0", "%n", "%k")


def _det_form(types: Types, given: Given) -> MatrixForm:
    n = types[0].shape[-1]
    form = MatrixForm("det", types[0], n * n * n // 3, n * n, 1)
    form.sizes(n=n)
    form.area("a", n * n)
    form.reals("pivots", n)
    form.reals("total", 3)
    return form


def _slogdet_form(types: Types, given: Given) -> MatrixForm:
    form = _det_form(types, given)
    form.name = "slogdet"
    form.steps.append(form.part)
    return form


def _factored(d: Driver) -> str:
    """The pivoted triangles in %a; whether the matrix is regular."""
    d.take("%x0", "%a", "%n", "%n")
    d.call("getrf", "%n.at", "%n.at", "%a", "%n.at", "%pivots", "%info")
    return d.w.op(f"icmp eq i64 {d.w.op('load i64, ptr %info, align 8')}, 0")


def _parts(d: Driver, value: str) -> tuple[str, str]:
    """The parts of an element."""
    if not d.complex:
        return value, ZERO
    one, two = (d.w.op(f"extractelement {d.wide} {value}, i64 {n}") for n in (0, 1))
    return one, two


def _product(d: Driver, a: str, b: str) -> str:
    w = d.w
    if not d.complex:
        return w.op(f"fmul double {a}, {b}")
    (p, q), (r, s) = _parts(d, a), _parts(d, b)
    one, two, three, four = (
        w.op(f"fmul double {x}, {y}") for x, y in ((p, r), (q, s), (p, s), (q, r))
    )
    return _pair(d, w.op(f"fsub double {one}, {two}"), w.op(f"fadd double {three}, {four}"))


def _pair(d: Driver, real: str, imaginary: str) -> str:
    first = d.w.op(f"insertelement {d.wide} poison, double {real}, i64 0")
    return d.w.op(f"insertelement {d.wide} {first}, double {imaginary}, i64 1")


def _turned(d: Driver, value: str, index: str) -> str:
    """A value with its sign changed where the pivot of a row is another."""
    w = d.w
    row = w.op(f"add i64 {index}, 1")  # LAPACK counts from 1
    other = w.op(f"icmp ne i64 {row}, {d.load('%pivots', index, 'i64')}")
    return w.op(f"select i1 {other}, {d.wide} {w.op(f'fneg {d.wide} {value}')}, {d.wide} {value}")


def _det(d: Driver) -> None:
    """The product of the diagonal, its exponent kept apart: nothing overflows or becomes too small
    on the way. Elements that are not normal numbers are left to NumPy's way."""
    w = d.w
    d.clear("%total", "1", 24)
    with when(w, _factored(d)):
        d.store(d.one, "%total", "0")
        with each(w, "0", "%n") as i:
            value = _product(d, d.load("%total", "0"), d.load("%a", d.at(i, "%n", i)))
            value = _turned(d, value, i)
            sizes = [w.intrinsic("fabs", "double", part) for part in _parts(d, value)]
            bits = w.op(f"bitcast double {w.intrinsic('maximum', 'double', *sizes)} to i64")
            exponent = w.op(f"lshr i64 {bits}, 52")
            beyond = w.op(f"add i64 {exponent}, -1")
            d.unsolved_if(w.op(f"icmp ugt i64 {beyond}, {2 * _BIAS - 4}"))
            far = w.op(f"sub i64 {exponent}, {_BIAS}")
            d.store(_scaled(d, value, w.op(f"sub i64 0, {far}")), "%total", "0")
            so_far = d.load("%total", "2", "i64")
            d.store(w.op(f"add i64 {so_far}, {far}"), "%total", "2", "i64")
    value, most = d.load("%total", "0"), 2 * _BIAS - 6
    exponent = w.intrinsic("smin", "i64", d.load("%total", "2", "i64"), str(most))
    exponent = w.intrinsic("smax", "i64", exponent, str(-most))
    half = w.op(f"ashr i64 {exponent}, 1")
    value = _scaled(d, _scaled(d, value, half), w.op(f"sub i64 {exponent}, {half}"))
    d.put(value, "%y0", "0")


def _scaled(d: Driver, value: str, exponent: str) -> str:
    """A value times a power of 2."""
    w = d.w
    bits = w.op(f"shl i64 {w.op(f'add i64 {exponent}, {_BIAS}')}, 52")
    factor = w.op(f"bitcast i64 {bits} to double")
    if not d.complex:
        return w.op(f"fmul double {value}, {factor}")
    return w.op(f"fmul {d.wide} {value}, {_pair(d, factor, factor)}")


def _slogdet(d: Driver) -> None:
    """Signs are multiplied, logarithms of magnitudes are added up."""
    w, minus = d.w, float_text("double", float("-inf"))
    d.clear("%total", "1", 16)
    w.put(f"store double {minus}, ptr %sum, align 8")
    with when(w, _factored(d)):
        d.store(d.one, "%total", "0")
        w.put(f"store double {ZERO}, ptr %sum, align 8")
        with each(w, "0", "%n") as i:
            value = d.load("%a", d.at(i, "%n", i))
            if d.complex:
                parts = _parts(d, value)
                size = w.call("double", "hypot", *(("double", part) for part in parts))
                turn = _pair(d, *(w.op(f"fdiv double {part}, {size}") for part in parts))
            else:
                size = w.intrinsic("fabs", "double", value)
                turn = w.intrinsic("copysign", "double", ONE, value)
            d.unsolved_if(w.op(f"fcmp uno double {size}, {size}"))
            turn = _product(d, d.load("%total", "0"), turn)
            d.store(_turned(d, turn, i), "%total", "0")
            log = w.call("double", "log", ("double", size))
            so_far = w.op("load double, ptr %sum, align 8")
            w.put(f"store double {w.op(f'fadd double {so_far}, {log}')}, ptr %sum, align 8")
    d.put(d.load("%total", "0"), "%y0", "0")
    d.put(w.op("load double, ptr %sum, align 8"), "%y1", "0", part=True)


BY_OP = {
    "cholesky": _cholesky_form,
    "solve": _solve_form,
    "inv": _inv_form,
    "triangular_solve": _triangular_form,
    "det": _det_form,
    "slogdet": _slogdet_form,
}
_FACTORED = ("n", "a.area", "pivots.area", "total.area")
ROUTINES = (
    MatrixRoutine("cholesky", 1, 1, ("n", "uplo", "a.area"), _cholesky),
    MatrixRoutine(
        "inv", 1, 1, ("n", "whole", "one", "a.area", "pivots.area", "work.area", "lwork"), _inv
    ),
    MatrixRoutine("solve", 2, 1, ("n", "k", "a.area", "b.area", "pivots.area"), _solve),
    MatrixRoutine(
        "triangular_solve",
        2,
        1,
        ("n", "k", "uplo", "trans", "diag", "a.area", "b.area"),
        _triangular,
    ),
    MatrixRoutine("det", 1, 1, _FACTORED, _det),
    MatrixRoutine("slogdet", 1, 2, _FACTORED, _slogdet),
)
