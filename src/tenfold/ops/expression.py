"""Expressions: values of a graph under construction, written as arithmetic.

Compositions that are formulas read as formulas with these: `x * x + 1` adds two nodes. A Python
number takes the dtype of the other operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.frozen import frozen
from tenfold.graph.build import Builder
from tenfold.ops.batching.rules import constant, make
from tenfold.types import SHORT, DType, Shape, TensorType


@frozen(eq=False)
class Expression:
    """One value of a builder."""

    builder: Builder
    value: int

    @property
    def type(self) -> TensorType:
        return self.builder.types[self.value]

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    def number(self, number: Any) -> Expression:
        """A number in the dtype of this expression."""
        return Expression(self.builder, constant(self.builder, self.dtype, number))

    def op(self, name: str, *others: Any, **attributes: Any) -> Expression:
        """The one value of an op on this expression and others (or numbers)."""
        given = [o if isinstance(o, Expression) else self.number(o) for o in others]
        values = (self.value, *(o.value for o in given))
        return Expression(self.builder, make(self.builder, name, *values, **attributes))

    def __add__(self, other: Any) -> Expression:
        return self.op("add", other)

    def __sub__(self, other: Any) -> Expression:
        return self.op("sub", other)

    def __mul__(self, other: Any) -> Expression:
        return self.op("mul", other)

    def __truediv__(self, other: Any) -> Expression:
        return self.op("div", other)

    def __and__(self, other: Any) -> Expression:
        return self.op("and", other)

    def __or__(self, other: Any) -> Expression:
        return self.op("or", other)

    def __xor__(self, other: Any) -> Expression:
        return self.op("xor", other)

    def __lshift__(self, other: Any) -> Expression:
        return self.op("shl", other)

    def __rshift__(self, other: Any) -> Expression:
        return self.op("shr", other)

    def __lt__(self, other: Any) -> Expression:
        return self.op("lt", other)

    def __le__(self, other: Any) -> Expression:
        return self.op("le", other)

    def __gt__(self, other: Any) -> Expression:
        return self.op("gt", other)

    def __ge__(self, other: Any) -> Expression:
        return self.op("ge", other)

    def __neg__(self) -> Expression:
        return self.op("neg")

    def __invert__(self) -> Expression:
        return self.op("not")

    def equals(self, other: Any) -> Expression:
        return self.op("eq", other)

    def cast(self, dtype: DType) -> Expression:
        return self if self.dtype == dtype else self.op("cast", dtype=SHORT[dtype])

    def reshape(self, *shape: int) -> Expression:
        return self if self.shape == shape else self.op("reshape", shape=shape)

    def broadcast(self, *shape: int) -> Expression:
        return self if self.shape == shape else self.op("broadcast", shape=shape)

    def part(self, axis: int, start: int, stop: int, step: int = 1) -> Expression:
        """A slice along one axis."""
        if (start, stop, step) == (0, self.shape[axis], 1):
            return self
        starts, stops, steps = [0] * len(self.shape), list(self.shape), [1] * len(self.shape)
        starts[axis], stops[axis], steps[axis] = start, stop, step
        return self.op("slice", starts=starts, stops=stops, steps=steps)


def select(condition: Expression, yes: Any, no: Any) -> Expression:
    """One of two where the condition holds, the other where it does not; one of them may be a
    number."""
    if not isinstance(yes, Expression):
        yes = no.number(yes)
    if not isinstance(no, Expression):
        no = yes.number(no)
    return condition.op("select", yes, no)


def polynomial(x: Expression, coefficients: Sequence[float]) -> Expression:
    """The sum of c[i] * x**i, by Horner's rule."""
    *rest, last = coefficients
    made = x * 0 + last if not rest else None
    for c in reversed(rest):
        made = (x * last if made is None else made * x) + c
    assert made is not None
    return made
