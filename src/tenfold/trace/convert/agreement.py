"""Agreement: two values that a variable may have, brought to one type."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import TenfoldError
from tenfold.frozen import frozen
from tenfold.trace.array import Array
from tenfold.trace.containers import Structure, flatten, matched
from tenfold.trace.control.agree import LeafForm, difference, form, join
from tenfold.trace.convert.exits import NOTHING
from tenfold.trace.exact import same
from tenfold.trace.operand import is_operand
from tenfold.types import TensorType


class Disagreement(Exception):
    """Why two values have no one type. Caught where it is told what it means."""


@frozen(eq=False)
class Common:
    """What two values have in common: a container, its leaves from each, and the form of each
    leaf; None where a leaf is the same Python value in both."""

    structure: Structure
    leaves: tuple[list[Any], list[Any]]
    forms: list[LeafForm | None]

    def value(self, made: list[Array]) -> Any:
        """The container, with these arrays for the leaves that differ."""
        left = iter(made)
        leaves = [
            one if f is None else next(left)
            for one, f in zip(self.leaves[0], self.forms, strict=True)
        ]
        return self.structure.unflatten(leaves)


def common(one: Any, other: Any) -> Common:
    """What two values have in common. Disagreement: nothing."""
    if one is NOTHING or other is NOTHING:
        raise Disagreement("it has a value on one side only")
    structure, leaves = _flat(one)
    second, others = _flat(other)
    found = matched(structure, second, others)
    if found is None:
        path, a, b = difference(structure, second, "it")
        raise Disagreement(f"{path} is {a} on one side, {b} on the other")
    forms = [_form(a, b) for a, b in zip(leaves, found, strict=True)]
    return Common(structure, (leaves, found), forms)


def filled(value: Any, missing_first: bool) -> Common:
    """A value with zeros for the side where there is none, which nobody looks at."""
    structure, leaves = _flat(value)
    forms: list[LeafForm | None] = []
    zeros = []
    for leaf in leaves:
        if isinstance(leaf, Array):
            forms.append(form(leaf))
            zeros.append(zero(form(leaf)))
        else:
            forms.append(None)
            zeros.append(leaf)
    return Common(structure, (zeros, leaves) if missing_first else (leaves, zeros), forms)


def zero(wanted: LeafForm) -> Any:
    """A value of this form."""
    if wanted.weak is not None:
        return wanted.weak(0)
    return np.zeros(wanted.type.shape, wanted.type.dtype)[()]


def agreed(one: LeafForm, other: LeafForm) -> LeafForm:
    """The form that two have in common: Python numbers give way."""
    if one.type.shape != other.type.shape:
        raise Disagreement(f"it is {one} on one side, {other} on the other")
    dtype, weak = join((one.key, other.key))
    for side in (one, other):
        if side.weak is None and side.type.dtype != dtype:
            raise Disagreement(f"it is {one} on one side, {other} on the other")
    return LeafForm(TensorType(dtype, one.type.shape), weak)


def _form(one: Any, other: Any) -> LeafForm | None:
    if one is other or (not _arrays(one, other) and _plain(one) and same(one, other)):
        return None
    for leaf in (one, other):
        if not is_operand(leaf):
            raise Disagreement(f"it is a {type(leaf).__name__}, no array and no number")
    return agreed(form_of(one), form_of(other))


def form_of(leaf: Any) -> LeafForm:
    """What a leaf is; Disagreement where it is nothing that a program has."""
    try:
        return form(leaf)
    except TenfoldError as error:
        raise Disagreement(error.message) from None


def _plain(value: Any) -> bool:
    return not isinstance(value, np.ndarray)


def _arrays(*values: Any) -> bool:
    return any(isinstance(value, Array) for value in values)


def _flat(value: Any) -> tuple[Structure, list[Any]]:
    try:
        return flatten(value)
    except TenfoldError as error:
        raise Disagreement(error.message) from None
