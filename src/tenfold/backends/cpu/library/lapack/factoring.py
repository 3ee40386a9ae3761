"""Routines that factor: lu and qr."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenfold.backends.cpu.library.lapack.driver import ONE, Driver
from tenfold.backends.cpu.library.lapack.form import BLOCK, MatrixForm, MatrixRoutine, matrix_of
from tenfold.backends.cpu.library.loops import each
from tenfold.types import TensorType

Types = Sequence[TensorType]
Given = Mapping[str, Any]


def _lu_form(types: Types, given: Given) -> MatrixForm:
    m, n, k = matrix_of(types)
    form = MatrixForm("lu", types[0], m * n * k, m * n, m * m, m * k, k * n)
    form.steps[1] = m * m * form.part  # the permutation is real
    form.sizes(m=m, n=n, k=k)
    form.area("a", m * n)
    form.reals("pivots", k)
    form.reals("order", m)
    return form


def _lu(d: Driver) -> None:
    w = d.w
    d.take("%x0", "%a", "%m", "%n")
    d.call("getrf", "%m.at", "%n.at", "%a", "%m.at", "%pivots", "%info")
    d.unsolved_unless_finite("%a", w.op("mul i64 %m, %n"))  # which pivot is it then?
    with each(w, "0", "%m") as i:
        d.store(i, "%order", i, "i64")
    with each(w, "0", "%k") as i:
        other = w.op(f"sub i64 {d.load('%pivots', i, 'i64')}, 1")  # LAPACK counts from 1
        one, two = (d.load("%order", at, "i64") for at in (i, other))
        d.store(two, "%order", i, "i64")
        d.store(one, "%order", other, "i64")
    d.clear("%y0", w.op("mul i64 %m, %m"), d.size // 2 if d.complex else d.size)
    with each(w, "0", "%m") as i:
        d.put(ONE, "%y0", d.at(d.load("%order", i, "i64"), "%m", i), part=True)
    d.give_lower("%a", "%m", "%y1", "%m", "%k")
    with each(w, "0", "%k") as i:
        d.put(d.one, "%y1", d.at(i, "%k", i))
    d.give_upper("%a", "%m", "%y2", "%k", "%n")


def _qr_form(types: Types, given: Given) -> MatrixForm:
    m, n, k = matrix_of(types)
    inner = m if given["mode"] == "complete" else k
    matrices = (k * n,) if given["mode"] == "r" else (m * inner, inner * n)
    name = "r" if given["mode"] == "r" else "qr"
    form = MatrixForm(name, types[0], 2 * m * n * k, m * n, *matrices)
    form.sizes(m=m, n=n, k=k, inner=inner)
    form.area("a", m * n)
    form.area("tau", k)
    form.area("q", m * inner)
    form.workspace(BLOCK * max(n, inner))
    return form


def _triangle(d: Driver) -> None:
    d.take("%x0", "%a", "%m", "%n")
    d.call("geqrf", "%m.at", "%n.at", "%a", "%m.at", "%tau", "%work", "%lwork.at", "%info")
    d.unsolved_by_info()


def _r(d: Driver) -> None:
    _triangle(d)
    d.give_upper("%a", "%m", "%y0", "%k", "%n")


def _qr(d: Driver) -> None:
    _triangle(d)
    with each(d.w, "0", d.w.op("mul i64 %m, %k")) as i:
        d.store(d.load("%a", i), "%q", i)
    d.call(
        "ungqr" if d.complex else "orgqr", "%m.at", "%inner.at", "%k.at", "%q", "%m.at", "%tau",
        "%work", "%lwork.at", "%info",
    )  # fmt: skip
    d.unsolved_by_info()
    d.give("%q", "%y0", "%m", "%inner")
    d.give_upper("%a", "%m", "%y1", "%inner", "%n")


BY_OP = {"lu": _lu_form, "qr": _qr_form}
_R = ("m", "n", "k", "a.area", "tau.area", "work.area", "lwork")
ROUTINES = (
    MatrixRoutine("lu", 1, 3, ("m", "n", "k", "a.area", "pivots.area", "order.area"), _lu),
    MatrixRoutine("r", 1, 1, _R, _r),
    MatrixRoutine("qr", 1, 2, (*_R, "inner", "q.area"), _qr),
)
