"""Einsum: sums of products by labels, as a row of contractions of two operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tenfold.errors import ShapeError, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.operand import dtype_key
from tenfold.trace.surface.algebra.products import contract
from tenfold.trace.surface.emit import cast, dtype_of, emit, fail, is_array, on, traced
from tenfold.trace.surface.indexing.diagonals import take_diagonal
from tenfold.trace.surface.into import write
from tenfold.trace.surface.reducing.reductions import total
from tenfold.trace.surface.steps import BasicIndex, Strided, view
from tenfold.trace.surface.ufuncs.composed import same
from tenfold.trace.surface.ufuncs.promotion import common
from tenfold.trace.tables import UFUNCS
from tenfold.types import BOOL

# An operand on its way: its array and the label of each axis.
Labelled = tuple[Array, str]
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@on(np.einsum)
def einsum(
    *operands: Any,
    out: Any = None,
    dtype: Any = None,
    order: str = "K",
    casting: str = "safe",
    optimize: Any = False,
) -> Array:
    text, given = _spelled(operands)
    given = [x if is_array(x) else traced(x) for x in given]
    made = dtype_of(dtype) if dtype is not None else common(tuple(map(dtype_key, given)))
    arrays = [traced(x, made) for x in given]
    inputs, result = _read(text, arrays)
    if out is not None:
        return write(out, _contracted(arrays, inputs, result, optimize))
    if len(given) == 1 and arrays[0] is given[0] and set(inputs[0]) == set(result):
        return _view(arrays[0], inputs[0], result)
    return same(_contracted(arrays, inputs, result, optimize))


def _contracted(arrays: list[Array], inputs: list[str], result: str, optimize: Any) -> Array:
    work = _prepared(arrays, inputs, result)
    for pair in _path(work, result, optimize):
        first, second = (work.pop(i) for i in sorted(pair, reverse=True))
        later = set(result).union(*(labels for _, labels in work))
        work.append(_multiply(second, first, later))
    ((array, labels),) = work
    array, labels = _summed(array, labels, set(result))
    order_ = tuple(labels.index(label) for label in result)
    if order_ != tuple(range(len(order_))):
        array = emit("transpose", array, axes=order_)
    return array


def _view(x: Array, labels: str, result: str) -> Array:
    """What nothing is summed of: axes reordered, and diagonals."""
    if len(labels) == len(result):
        return view(x, BasicIndex.whole(x.shape, tuple(map(labels.index, result))))

    def lay(base: Any) -> Any:
        pairs = list(zip(labels, base.strides, strict=True))
        shape = [base.shape[labels.index(label)] for label in result]
        return as_strided(base, shape, [sum(s for c, s in pairs if c == o) for o in result])

    return view(x, Strided(lambda base: _contracted([base], [labels], result, False), lay))


def _spelled(operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """The subscripts as text, also where they are given as lists of numbers."""
    if not operands:
        fail(ValueProblem, "einsum of nothing", "write np.einsum('ij,jk->ik', x, y)")
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])

    def letters(numbers: Sequence[Any]) -> str:
        return "".join("..." if n is Ellipsis else _LETTERS[n] for n in numbers)

    count = len(operands) // 2
    text = ",".join(letters(operands[2 * i + 1]) for i in range(count))
    if len(operands) % 2:
        text += "->" + letters(operands[-1])
    return text, [operands[2 * i] for i in range(count)]


def _read(text: str, arrays: list[Array]) -> tuple[list[str], str]:
    """The labels of each operand and of the result, with letters for what `...` stands for."""
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays):
        fail(
            ValueProblem,
            f"einsum {text!r} names {len(terms)} operands, {len(arrays)} are given",
            "separate the operands' subscripts by commas",
        )
    free = [c for c in _LETTERS if c not in text]
    spare = 0
    for term, x in zip(terms, arrays, strict=True):
        if "..." in term:
            spare = max(spare, x.ndim - len(term.replace("...", "")))
    dots = "".join(free[:spare])
    inputs = []
    for term, x in zip(terms, arrays, strict=True):
        width = x.ndim - len(term.replace("...", ""))
        labels = term.replace("...", dots[len(dots) - width :] if width > 0 else "")
        if len(labels) != x.ndim or not all(c in _LETTERS for c in labels):
            fail(
                ValueProblem,
                f"einsum: the subscripts {term!r} do not fit an operand of type {x.type}",
                "give one letter an axis, or ... for the rest",
            )
        inputs.append(labels)
    if arrow:
        result = right.replace("...", dots)
    else:
        seen = "".join(inputs)
        once = sorted(c for c in set(seen) if seen.count(c) == 1 and c not in dots)
        result = dots + "".join(once)
    if len(set(result)) != len(result) or not set(result) <= set("".join(inputs)):
        fail(
            ValueProblem,
            f"einsum: the result {right!r} has a label twice, or one that no operand has",
            "name each label of the result once",
        )
    return inputs, result


def _prepared(arrays: list[Array], inputs: list[str], result: str) -> list[Labelled]:
    """Operands with each label once; an axis of extent 1 that others stretch is dropped."""
    extents: dict[str, int] = {}
    for x, labels in zip(arrays, inputs, strict=True):
        for label, n in zip(labels, x.shape, strict=True):
            known = extents.setdefault(label, n)
            if known == 1:
                extents[label] = n
            elif n not in (1, known):
                fail(
                    ShapeError,
                    f"einsum: the label {label!r} has the extents {known} and {n}",
                    "axes with one label need equal extents",
                )
    work = []
    for x, labels in zip(arrays, inputs, strict=True):
        gone = [i for i, c in enumerate(labels) if x.shape[i] == 1 and extents[c] != 1]
        if gone:
            x = emit("reshape", x, shape=tuple(n for i, n in enumerate(x.shape) if i not in gone))
            labels = "".join(c for i, c in enumerate(labels) if i not in gone)
        for label in dict.fromkeys(labels):
            while labels.count(label) > 1:
                i = labels.index(label)
                j = labels.index(label, i + 1)
                x = take_diagonal(x, i, j)
                labels = labels[:i] + labels[i + 1 : j] + labels[j + 1 :] + label
        work.append((x, labels))
    return work


def _path(work: list[Labelled], result: str, optimize: Any) -> list[tuple[int, ...]]:
    """Which two operands are multiplied next, again and again."""
    if len(work) <= 2:
        return [(0, 1)] if len(work) == 2 else []
    text = ",".join(labels for _, labels in work) + "->" + result
    shells = [np.broadcast_to(np.zeros((), np.float64), x.shape) for x, _ in work]
    path, _ = np.einsum_path(text, *shells, optimize="greedy" if optimize is False else optimize)
    pairs: list[tuple[int, ...]] = []
    for step in path[1:]:
        # a step of many operands is so many steps of two
        pairs.extend([tuple(step)[-2:]] if len(step) == 2 else [(0, 1)] * (len(step) - 1))
    return pairs


def _summed(x: Array, labels: str, needed: set[str]) -> Labelled:
    """An operand without the axes that nobody needs any more."""
    axes = tuple(i for i, c in enumerate(labels) if c not in needed)
    if not axes:
        return x, labels
    x = cast(total(x, axes, dtype=x.dtype), x.dtype)
    return x, "".join(c for c in labels if c in needed)


def _multiply(first: Labelled, second: Labelled, later: set[str]) -> Labelled:
    """The product of two operands, summed over what is needed no more."""
    x, left = _summed(*first, later | set(second[1]))
    y, right = _summed(*second, later | set(first[1]))
    shared = [c for c in left if c in right]
    batch = [c for c in shared if c in later]
    sums = [c for c in shared if c not in later]
    rest_left = [c for c in left if c not in shared]
    rest_right = [c for c in right if c not in shared]
    labels = "".join(batch + rest_left + rest_right)
    if not sums and x.dtype != BOOL:  # a product without a sum is elementwise
        return _elementwise(x, left, y, right, labels), labels
    made = contract(
        x,
        y,
        [left.index(c) for c in sums],
        [right.index(c) for c in sums],
        [left.index(c) for c in batch],
        [right.index(c) for c in batch],
    )
    return made, labels


def _elementwise(x: Array, left: str, y: Array, right: str, labels: str) -> Array:
    def spread(array: Array, own: str) -> Array:
        order = tuple(own.index(c) for c in labels if c in own)
        array = emit("transpose", array, axes=order)
        extents = iter(array.shape)
        return emit("reshape", array, shape=tuple(next(extents) if c in own else 1 for c in labels))

    product: Array = UFUNCS[np.multiply](spread(x, left), spread(y, right))
    return product
