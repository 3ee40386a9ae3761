"""Routines of LAPACK by name: their parameters, scratch memory and text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from tenfold.backends.cpu.library.lapack import factoring, small, solving, spectral
from tenfold.backends.cpu.library.lapack.driver import Driver
from tenfold.backends.cpu.library.lapack.form import MatrixForm, MatrixRoutine
from tenfold.backends.cpu.library.lapack.small import small_form
from tenfold.backends.cpu.library.lapack.symbols import lapack_symbols
from tenfold.backends.cpu.library.routine import NodeRoutine
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.types import SHORT, TensorType

Given = Mapping[str, Any]

_BY_OP: Mapping[str, Callable[[Sequence[TensorType], Given], MatrixForm]] = {
    **factoring.BY_OP,
    **solving.BY_OP,
    **spectral.BY_OP,
}
_BY_NAME: Mapping[str, MatrixRoutine] = {
    routine.name: routine
    for part in (factoring, small, solving, spectral)
    for routine in part.ROUTINES
}
_SMALL = ("solve", "inv", "det")
_POLLED = 100_000  # nanoseconds of work without a poll, but for one matrix


def form_of(name: str, types: Sequence[TensorType], given: Given) -> MatrixForm:
    """What the routine of an op is given."""
    if name in _SMALL:
        form = small_form(name, types, given)
        if form is not None:
            return form
    return _BY_OP[name](types, given)


def lapack_routine(name: str, types: Sequence[TensorType], given: Given) -> NodeRoutine | None:
    """The call of a routine for an op on matrices in the last two axes."""
    if lapack_symbols() is None:
        return None
    dtype = SHORT[types[0].dtype]
    form = form_of(name, types, given)
    parts = prod(types[0].shape[:-2])
    each = 200 + form.work // 4
    rest = 1
    while rest * each < _POLLED and rest < 1024:
        rest *= 2
    routine = _BY_NAME[form.name]
    params = (*form.steps, rest - 1, *(form.words[name] for name in routine.params))
    return NodeRoutine(
        f"tn_{form.name}_{dtype}", params, parts, form.scratch, parts * each, leaves=True
    )


def lapack_text(name: str, dtype: str, target: LLVMTarget) -> str:
    """The module of a routine."""
    routine = _BY_NAME[name]
    driver = Driver(dtype, target)
    driver.w.label("matrix")
    routine.write(driver)
    symbol = f"tn_{name}_{dtype}"
    return driver.module(symbol, driver.w.taken(), routine.inputs, routine.outputs, routine.params)
