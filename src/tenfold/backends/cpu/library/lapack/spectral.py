"""Routines of eigenvalues and singular values: eigh, eig, svd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenfold.backends.cpu.library.lapack.driver import ZERO, Driver
from tenfold.backends.cpu.library.lapack.form import BLOCK, MatrixForm, MatrixRoutine, matrix_of
from tenfold.backends.cpu.library.loops import each
from tenfold.types import TensorType

Types = Sequence[TensorType]
Given = Mapping[str, Any]

# Symmetric, or hermitian.


def _eigh_form(types: Types, given: Given) -> MatrixForm:
    n, vectors = types[0].shape[-1], given["vectors"]
    name, matrices = ("eigh", (n, n * n)) if vectors else ("eigvalsh", (n,))
    form = MatrixForm(name, types[0], 9 * n * n * n, n * n, *matrices)
    form.steps[1] = n * form.part  # eigenvalues are real
    form.sizes(n=n)
    form.letters(job="V" if vectors else "N", uplo="L" if given["lower"] else "U")
    form.area("a", n * n)
    form.reals("values", n)
    least = 1 + 6 * n + 2 * n * n if vectors else 0  # of the real routine, which takes more
    form.workspace(max(least, (BLOCK + 2) * n + 1))
    reals = 1 + 5 * n + 2 * n * n if vectors else n
    form.reals("reals", reals if form.complex else 1)
    form.sizes(lreals=reals)
    integers = 3 + 5 * n if vectors else 1
    form.reals("integers", integers)
    form.sizes(lintegers=integers)
    return form


def _eigvalsh(d: Driver) -> None:
    d.take("%x0", "%a", "%n", "%n")
    more = ("%reals", "%lreals.at") if d.complex else ()
    d.call(
        "heevd" if d.complex else "syevd", "%job.at", "%uplo.at", "%n.at", "%a", "%n.at",
        "%values", "%work", "%lwork.at", *more, "%integers", "%lintegers.at", "%info", letters=2,
    )  # fmt: skip
    d.unsolved_by_info()
    d.give_reals("%values", "%y0", "%n")


def _eigh(d: Driver) -> None:
    _eigvalsh(d)
    d.give("%a", "%y1", "%n", "%n")


# Singular values.


def _svd_form(types: Types, given: Given) -> MatrixForm:
    m, n, k = matrix_of(types)
    most = max(m, n)
    vectors, whole = given["compute_uv"], given["full_matrices"]
    rows, columns = (m, n) if whole else (k, k)
    name, matrices = ("svd", (m * rows, k, columns * n)) if vectors else ("svdvals", (k,))
    form = MatrixForm(name, types[0], 20 * m * n * k, m * n, *matrices)
    form.steps[2 if vectors else 1] = k * form.part
    form.sizes(m=m, n=n, k=k, rows=rows, columns=columns)
    form.letters(job=("A" if whole else "S") if vectors else "N")
    form.area("a", m * n)
    form.area("u", m * rows if vectors else 1)
    form.area("v", columns * n if vectors else 1)
    form.reals("values", k)
    form.reals("integers", 8 * k)
    # More than the best for any job, which LAPACK's documents bound in these terms.
    form.workspace(6 * k * k + 16 * k + (BLOCK + 2) * (m + n) + most)
    form.reals("reals", k * max(5 * k + 7, 2 * most + 2 * k + 1) if form.complex else 1)
    return form


def _svdvals(d: Driver, target: str = "%y0") -> None:
    d.take("%x0", "%a", "%m", "%n")
    d.unsolved_unless_finite("%a", d.w.op("mul i64 %m, %n"))
    more = ("%reals",) if d.complex else ()
    d.call(
        "gesdd", "%job.at", "%m.at", "%n.at", "%a", "%m.at", "%values", "%u", "%m.at", "%v",
        "%columns.at", "%work", "%lwork.at", *more, "%integers", "%info", letters=1,
    )  # fmt: skip
    d.unsolved_by_info()
    d.give_reals("%values", target, "%k")


def _svd(d: Driver) -> None:
    _svdvals(d, "%y1")
    d.give("%u", "%y0", "%m", "%rows")
    d.give("%v", "%y2", "%columns", "%n")


# Any square matrix.


def _eig_form(types: Types, given: Given) -> MatrixForm:
    n, vectors = types[0].shape[-1], given["vectors"]
    name, matrices = ("eig", (n, n * n)) if vectors else ("eigvals", (n,))
    form = MatrixForm(name, types[0], 25 * n * n * n, n * n, *matrices)
    form.steps[1:] = [2 * form.part * count for count in matrices]  # complex
    form.sizes(n=n)
    form.letters(no="N", job="V" if vectors else "N")
    form.area("a", n * n)
    form.area("v", n * n if vectors else 1)
    form.reals("values", 2 * n)
    form.reals("reals", 2 * n)
    form.workspace((2 * BLOCK + 6) * n)
    return form


def _eigvals(d: Driver) -> None:
    """Of real matrices %values has the real parts, then all imaginary parts."""
    w = d.w
    d.take("%x0", "%a", "%n", "%n")
    d.unsolved_unless_finite("%a", w.op("mul i64 %n, %n"))
    behind = d.place("%values", "%n", "double")
    given, more = (("%values",), ("%reals",)) if d.complex else (("%values", behind), ())
    d.call(
        "geev", "%no.at", "%job.at", "%n.at", "%a", "%n.at", *given, "%v", "%n.at", "%v", "%n.at",
        "%work", "%lwork.at", *more, "%info", letters=2,
    )  # fmt: skip
    d.unsolved_by_info()
    if d.complex:
        d.give_reals("%values", "%y0", w.op("shl i64 %n, 1"))
        return
    with each(w, "0", "%n") as i:
        _put(d, "%y0", i, d.load("%values", i, "double"), d.load(behind, i, "double"))


def _put(d: Driver, target: str, index: str, real: str, imaginary: str) -> None:
    """Store a complex number."""
    first = d.w.op(f"shl i64 {index}, 1")
    d.put(real, target, first, part=True)
    d.put(imaginary, target, d.w.op(f"or i64 {first}, 1"), part=True)


def _eig(d: Driver) -> None:
    _eigvals(d)
    if d.complex:
        d.give("%v", "%y1", "%n", "%n")
        return
    # Of a pair, the one with the positive imaginary part stands first; LAPACK gives the parts of
    # its vector as two columns, and the other's is the conjugate of that.
    w = d.w
    with each(w, "0", "%n") as j:
        turn = d.load(d.place("%values", "%n", "double"), j, "double")
        above, below = (w.op(f"fcmp {test} double {turn}, {ZERO}") for test in ("ogt", "olt"))
        paired = w.op(f"or i1 {above}, {below}")
        first = w.op(f"select i1 {below}, i64 {w.op(f'sub i64 {j}, 1')}, i64 {j}")
        second = w.op(f"select i1 {paired}, i64 {w.op(f'add i64 {first}, 1')}, i64 {first}")
        with each(w, "0", "%n") as i:
            real, other = (d.load("%v", d.at(column, "%n", i)) for column in (first, second))
            turned = w.op(f"fneg double {other}")
            part = w.op(f"select i1 {below}, double {turned}, double {other}")
            part = w.op(f"select i1 {paired}, double {part}, double {ZERO}")
            _put(d, "%y1", d.at(i, "%n", j), real, part)


BY_OP = {"eigh": _eigh_form, "svd": _svd_form, "eig": _eig_form}
_WORK = ("a.area", "values.area", "work.area", "lwork", "reals.area")
_EIGH = (*_WORK, "n", "job", "uplo", "lreals", "integers.area", "lintegers")
_SVD = (*_WORK, "m", "n", "k", "rows", "columns", "job", "u.area", "v.area", "integers.area")
_EIG = (*_WORK, "n", "no", "job", "v.area")
ROUTINES = (
    MatrixRoutine("eigh", 1, 2, _EIGH, _eigh),
    MatrixRoutine("eigvalsh", 1, 1, _EIGH, _eigvalsh),
    MatrixRoutine("svd", 1, 3, _SVD, _svd),
    MatrixRoutine("svdvals", 1, 1, _SVD, _svdvals),
    MatrixRoutine("eig", 1, 2, _EIG, _eig),
    MatrixRoutine("eigvals", 1, 1, _EIG, _eigvals),
)
