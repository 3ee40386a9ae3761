"""Agreement: branches that must give the same type, loops whose state must keep its type.

Where two sides differ, the message shows both, by the path of the leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TenfoldError, TypeMismatch
from tenfold.frozen import frozen
from tenfold.trace.array import Array
from tenfold.trace.containers import Structure, flatten, matched, sorted_keys
from tenfold.trace.control.inner import Inner
from tenfold.trace.operand import PYTHON, dtype_key, weak_of
from tenfold.trace.scope import Scope
from tenfold.trace.source import describe, here
from tenfold.trace.surface.ufuncs.promotion import common
from tenfold.types import DType, TensorType

Weak = type | None  # int, float or complex where something is a Python number
_NUMBERS: tuple[Any, ...] = (int, float, complex)
_SHOWN = 6  # how many differences a message lists


@frozen
class LeafForm:
    """What a leaf is."""

    type: TensorType
    weak: Weak

    @property
    def key(self) -> Any:
        return self.weak or self.type.dtype

    def __str__(self) -> str:
        return f"a Python {self.weak.__name__}" if self.weak else str(self.type)


def form(leaf: Any) -> LeafForm:
    try:
        key = dtype_key(leaf)
    except TenfoldError as error:
        error.at(describe(here()))
        raise
    shape = leaf.shape if isinstance(leaf, Array) else np.shape(leaf)
    return LeafForm(TensorType(PYTHON.get(key, key), tuple(shape)), weak_of(leaf))


# -- branches


def merge(what: str, names: Sequence[str], branches: Sequence[Inner]) -> list[LeafForm]:
    """The forms that the branches' results are brought to, as np.where would bring them."""
    first = branches[0]
    for name, branch in zip(names[1:], branches[1:], strict=True):
        leaves = matched(first.structure, branch.structure, branch.leaves)
        if leaves is not None:  # dicts come in the first branch's order
            branch.structure, branch.leaves = first.structure, leaves
        else:
            path, one, other = difference(first.structure, branch.structure, "result")
            raise TypeMismatch(
                f"{what}: the branches give different containers\n"
                f"  {path}: {one} from {names[0]}, {other} from {name}",
                where=describe(here()),
                fix="return the same containers with the same keys from every branch",
            )
    merged = []
    paths = first.structure.paths("result")
    for at, path in enumerate(paths):
        forms = [form(branch.leaves[at]) for branch in branches]
        try:
            shape = np.broadcast_shapes(*(f.type.shape for f in forms))
        except ValueError:
            sides = ", ".join(f"{f} from {name}" for f, name in zip(forms, names, strict=True))
            raise ShapeError(
                f"{what}: the results of the branches do not broadcast\n  {path}: {sides}",
                where=describe(here()),
                fix="reshape or pad them so that every branch gives the same shape",
            ) from None
        dtype, weak = join([f.key for f in forms])
        merged.append(LeafForm(TensorType(dtype, shape), weak))
    return merged


def join(keys: Sequence[Any]) -> tuple[DType, Weak]:
    """The dtype that all these keys promote to; Python numbers alone stay Python numbers."""
    if all(isinstance(key, type) for key in keys):  # not `in`: np.dtype(float) equals float
        weak = max(keys, key=_NUMBERS.index)
        return PYTHON[weak], weak
    return common(tuple(dict.fromkeys(keys))), None


# -- loops


@frozen
class LoopState:
    """What a loop carries: a container of leaves, and the forms they have inside the loop.

    A path is `root`, then the path in the container without `prefix`.
    """

    structure: Structure
    leaves: list[Any]
    forms: tuple[LeafForm, ...]
    root: str
    prefix: str = ""

    @classmethod
    def of(cls, container: Any, root: str, prefix: str = "") -> LoopState:
        structure, leaves = flatten(container)
        return cls(structure, leaves, tuple(form(leaf) for leaf in leaves), root, prefix)

    def arguments(self, scope: Scope) -> Any:
        """The container of new parameters of this scope, one for each leaf."""
        return self.structure.unflatten(
            [Array(scope, scope.builder.parameter(f.type), weak=f.weak) for f in self.forms]
        )

    def after(self, what: str, structure: Structure, leaves: Sequence[Any]) -> LoopState:
        """This state, if the body's result has its types; or with Python numbers that it
        started from taking the dtype of the result. Else TypeMismatch."""
        if structure != self.structure:
            path, into, out = difference(self.structure, structure, "")
            raise TypeMismatch(
                f"{what}: the body changes the containers of the {self.root}\n"
                f"  {self._path(path)}: {into} goes in, {out} comes out",
                where=describe(here()),
                fix=f"return the {self.root} in the containers it came in, with all its parts",
            )
        forms, wrong, hints = [], [], []
        for path, leaf, before, result in zip(
            structure.paths(), self.leaves, self.forms, leaves, strict=True
        ):
            after = form(result)
            grown = grow(before, after, weak_of(leaf) is not None)
            if grown is None:
                wrong.append(f"\n  {self._path(path)}: {before} goes in, {after} comes out")
                hints.append(_remedy(before, after))
            forms.append(grown or before)
        if wrong:
            more = f"\n  and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
            raise TypeMismatch(
                f"{what}: the body changes the type of the {self.root}"
                + "".join(wrong[:_SHOWN])
                + more,
                where=describe(here()),
                fix=hints[0],
            )
        return replace(self, forms=tuple(forms))

    def _path(self, path: str) -> str:
        return self.root + path.removeprefix(self.prefix)


def grow(before: LeafForm, after: LeafForm, number: bool) -> LeafForm | None:
    """The form of a carry that goes in as one and comes out as the other; None: there is none."""
    if before.type.shape != after.type.shape:
        return None
    dtype, weak = join((before.key, after.key))
    if number:
        return LeafForm(TensorType(dtype, before.type.shape), weak)
    fits = before.weak is None and dtype == before.type.dtype
    return before if fits and (after.weak or after.type.dtype == dtype) else None


def _remedy(before: LeafForm, after: LeafForm) -> str:
    if before.type.shape != after.type.shape:
        return f"start from an array of shape {after.type.shape}, or keep the shape in the body"
    into, out = before.type.dtype.name, after.type.dtype.name
    return f"cast it back in the body, .astype('{into}'), or start from .astype('{out}')"


# -- structures


def difference(one: Structure, other: Structure, root: str) -> tuple[str, str, str]:
    """The first place where two structures differ, whatever the order of their dicts: its path
    and what stands there in each."""
    pairs = zip(sorted_keys(one)[0].walk(root), sorted_keys(other)[0].walk(root), strict=False)
    return next((path, shown(a), shown(b)) for (path, a), (_, b) in pairs if a != b)


def shown(token: Any) -> str:
    """A token in the words of a message."""
    match token:
        case ("leaf",):
            return "an array"
        case ("static", _, value):
            return repr(value)
        case ("dict", keys):
            return f"a dict with keys {', '.join(repr(k) for _, k in keys) or 'none'}"
        case ("named" | "data", cls, _):
            return f"a {cls.__name__}"
        case (kind, count):
            return f"a {kind} of {count}"
    return str(token)
