"""Small real matrices, solved without LAPACK, whose calls would take longer than the work.

Rows have room for 8 columns and, behind them, for 8 of the right sides; rows are eliminated with
partial pivoting, a whole row at a time, then substituted backwards. Matrices that can't be solved,
or have an infinity or a NaN in them, are left to the evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tenfold.backends.cpu.library.lapack.driver import ONE, ZERO, Driver
from tenfold.backends.cpu.library.lapack.form import MatrixForm, MatrixRoutine
from tenfold.backends.cpu.library.loops import carried, each, when
from tenfold.backends.llvm.writer import float_text
from tenfold.types import KIND, TensorType

Types = Sequence[TensorType]

MOST = 8  # rows, and columns of right sides
_ROW = 2 * MOST
_HALF = f"<{MOST} x double>"
_INFINITY = float_text("double", float("inf"))


def small_form(name: str, types: Types, given: Mapping[str, Any]) -> MatrixForm | None:
    """What a routine is given, or None where matrices are not small."""
    n = types[0].shape[-1]
    k = {"solve": types[-1].shape[-1], "inv": n}.get(name, 0)
    if max(n, k) > MOST or KIND[types[0].dtype] != "f":
        return None
    sizes = {"solve": (n * n, n * k, n * k), "inv": (n * n, n * n), "det": (n * n, 1)}[name]
    form = MatrixForm(f"small_{name}", types[0], 8 * n * (n + k), *sizes)
    form.sizes(n=n, k=k)
    form.area("rows", n * _ROW)
    return form


def _row(d: Driver, i: str, right: bool = False) -> str:
    """Where a row lies, or its right sides."""
    first = d.w.op(f"mul i64 {i}, {_ROW}")
    if right:
        first = d.w.op(f"add i64 {first}, {MOST}")
    return d.place("%rows", first, "double")


def _load(d: Driver, place: str) -> str:
    return d.w.op(f"load {_HALF}, ptr {place}, align 64")


def _store(d: Driver, value: str, place: str) -> None:
    d.w.put(f"store {_HALF} {value}, ptr {place}, align 64")


def _splat(d: Driver, value: str) -> str:
    return d.w.splat("double", value, MOST)


def _take(d: Driver, source: str, width: str, right: bool) -> None:
    """The rows of a matrix, zeros behind them."""
    w = d.w
    with each(w, "0", "%n") as i:
        row = _row(d, i, right)
        _store(d, "zeroinitializer", row)
        with each(w, "0", width) as j:
            place = d.place(source, d.at(i, width, j), d.part)
            value = w.op(f"load {d.part}, ptr {place}, align 4")
            if d.part != "double":
                value = w.op(f"fpext {d.part} {value} to double")
            d.store(value, row, j, "double")


def _unsolved_unless_finite(d: Driver, *, right: bool) -> None:
    w = d.w
    first = (_HALF, "zeroinitializer")
    with carried(w, "0", "%n", 1, first) as (i, (so_far,), onward):
        nothing = w.op(f"fmul {_HALF} {_load(d, _row(d, i, right))}, zeroinitializer")
        onward(w.op(f"fadd {_HALF} {so_far}, {nothing}"))
    lost = w.op(f"fcmp uno {_HALF} {so_far}, zeroinitializer")
    bits = w.op(f"bitcast <{MOST} x i1> {lost} to i{MOST}")
    d.unsolved_if(w.op(f"icmp ne i{MOST} {bits}, 0"))


def _eliminate(d: Driver, rights: bool, singular: Callable[[str], None]) -> str:
    """The upper triangle; whether an odd number of rows was exchanged. `singular` writes what is
    done where a condition holds."""
    w = d.w
    halves = (False, True) if rights else (False,)
    with carried(w, "0", "%n", 1, ("i1", "false")) as (j, (odd,), turned):
        first = ("double", float_text("double", -1.0)), ("i64", j)
        with carried(w, j, "%n", 1, *first) as (i, (most, best), onward):
            size = w.intrinsic("fabs", "double", d.load(_row(d, i), j, "double"))
            larger = w.op(f"fcmp ogt double {size}, {most}")
            onward(
                w.select(larger, "double", size, most),
                w.select(larger, "i64", i, best),
            )
        d.unsolved_if(w.op(f"fcmp uge double {most}, {_INFINITY}"))
        singular(w.op(f"fcmp ule double {most}, {ZERO}"))
        rows = {}
        for right in halves:
            places = _row(d, j, right), _row(d, best, right)
            here, there = (_load(d, place) for place in places)
            _store(d, here, places[1])
            _store(d, there, places[0])
            rows[right] = there
        pivot = d.load(_row(d, j), j, "double")
        begin = w.op(f"add i64 {j}, 1")
        with each(w, begin, "%n") as i:
            share = w.op(f"fdiv double {d.load(_row(d, i), j, 'double')}, {pivot}")
            _subtract(d, i, share, rows)
        other = w.op(f"icmp ne i64 {best}, {j}")
        turned(w.op(f"xor i1 {odd}, {other}"))
    return odd


def _subtract(d: Driver, i: str, share: str, rows: Mapping[bool, str]) -> None:
    """Take a share of another row from a row."""
    w = d.w
    for right, row in rows.items():
        place = _row(d, i, right)
        part = w.op(f"fmul {_HALF} {_splat(d, share)}, {row}")
        _store(d, w.op(f"fsub {_HALF} {_load(d, place)}, {part}"), place)


def _substitute(d: Driver) -> None:
    """The right sides become solutions."""
    w = d.w
    with each(w, "0", "%n") as turn:
        j = w.op(f"sub i64 {w.op('sub i64 %n, 1')}, {turn}")
        pivot = d.load(_row(d, j), j, "double")
        place = _row(d, j, True)
        row = w.op(f"fdiv {_HALF} {_load(d, place)}, {_splat(d, pivot)}")
        _store(d, row, place)
        with each(w, "0", j) as i:
            _subtract(d, i, d.load(_row(d, i), j, "double"), {True: row})
    _unsolved_unless_finite(d, right=True)  # too large
    with each(w, "0", "%n") as i:
        row = _row(d, i, True)
        with each(w, "0", "%k") as j:
            d.put(d.load(row, j, "double"), "%y0", d.at(i, "%k", j))


def _solve(d: Driver) -> None:
    _take(d, "%x0", "%n", False)
    _take(d, "%x1", "%k", True)
    _unsolved_unless_finite(d, right=False)
    _eliminate(d, True, d.unsolved_if)
    _substitute(d)


def _inv(d: Driver) -> None:
    _take(d, "%x0", "%n", False)
    with each(d.w, "0", "%n") as i:
        row = _row(d, i, True)
        _store(d, "zeroinitializer", row)
        d.store(ONE, row, i, "double")
    _unsolved_unless_finite(d, right=False)
    _eliminate(d, True, d.unsolved_if)
    _substitute(d)


def _det(d: Driver) -> None:
    """Where the product is no normal number, NumPy's way by logarithms is taken."""
    w = d.w
    _take(d, "%x0", "%n", False)
    _unsolved_unless_finite(d, right=False)

    def singular(condition: str) -> None:
        with when(w, condition):
            d.put(ZERO, "%y0", "0")
            w.put("br label %done")
            w.label(w.fresh("never"))

    odd = _eliminate(d, False, singular)
    first = w.select(odd, "double", float_text("double", -1.0), ONE)
    with carried(w, "0", "%n", 1, ("double", first)) as (i, (so_far,), onward):
        made = w.op(f"fmul double {so_far}, {d.load(_row(d, i), i, 'double')}")
        size = w.intrinsic("fabs", "double", made)
        for test, limit in (("ult", 2.0**-1022), ("ugt", 2.0**1022)):
            d.unsolved_if(w.op(f"fcmp {test} double {size}, {float_text('double', limit)}"))
        onward(made)
    d.put(so_far, "%y0", "0")


_PARAMS = ("n", "k", "rows.area")
ROUTINES = (
    MatrixRoutine("small_solve", 2, 1, _PARAMS, _solve),
    MatrixRoutine("small_inv", 1, 1, _PARAMS, _inv),
    MatrixRoutine("small_det", 1, 1, _PARAMS, _det),
)
