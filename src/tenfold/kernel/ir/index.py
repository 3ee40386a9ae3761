"""Index expressions: integer sums over axes and computed values, kept simple as they are made.

An `Index` is a sum of coefficient × atom plus a constant. An atom is an axis, a computed value
with its bound, `e // c` or `e % c` (both floor, as in Python). Every operation gives the
simplified form, so that equal positions mostly compare equal: multiples move out of `//` and
`%`, both vanish where the range allows, and `c * (e // c) + e % c` becomes `e` again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import gcd
from typing import Any

from tenfold.frozen import frozen

AXIS, VALUE, DIV, MOD = range(4)

Bounds = Mapping[int, tuple[int, int]]


@frozen(order=True)
class Atom:
    """What a coefficient multiplies: `of` is an axis, a value or an index, as `kind` says.

    `bound` is the extent of an axis, the exclusive bound of a value, or the divisor.
    """

    kind: int
    of: Any
    bound: int

    def range(self, bounds: Bounds) -> tuple[int, int]:
        """The least and the greatest value, both included."""
        if self.kind == AXIS:
            return bounds.get(self.of, (0, self.bound - 1))
        if self.kind == VALUE:
            return 0, self.bound - 1
        low, high = self.of.range(bounds)
        if self.kind == DIV:
            return low // self.bound, high // self.bound
        if low // self.bound == high // self.bound:
            return low % self.bound, high % self.bound
        return 0, self.bound - 1


Term = tuple[Atom, int]


@frozen(order=True)
class Index:
    """A simplified integer expression.

    >>> i, j = axis(0, 8), axis(1, 4)
    >>> (i * 4 + j) // 4, (i * 4 + j) % 4, (i * 4 + j) // 8
    (a0, a1, a0//2)
    """

    terms: tuple[Term, ...] = ()
    const: int = 0

    def __add__(self, other: Index | int) -> Index:
        if not isinstance(other, Index):
            if type(other) is int and not other:
                return self
            return Index(self.terms, self.const + other)
        if not other.terms:
            return self + other.const
        if not self.terms:
            return other + self.const
        sums = dict(self.terms)
        for atom, k in other.terms:
            sums[atom] = sums.get(atom, 0) + k
        return _gather(sums, self.const + other.const)

    def __mul__(self, factor: int) -> Index:
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        return Index(tuple((atom, k * factor) for atom, k in self.terms), self.const * factor)

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: Index | int) -> Index:
        return self + (-other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Index:
        return _divide(self, divisor)[0]

    def __mod__(self, divisor: int) -> Index:
        return _divide(self, divisor)[1]

    def range(self, bounds: Bounds | None = None) -> tuple[int, int]:
        """The least and greatest value, both included; `bounds` narrows axes.

        >>> (axis(0, 8) * 2 - 1).range()
        (-1, 13)
        """
        low = high = self.const
        for atom, k in self.terms:
            a, b = atom.range(bounds or {})
            low += k * (a if k > 0 else b)
            high += k * (b if k > 0 else a)
        return low, high

    def axes(self) -> frozenset[int]:
        """The axes that appear anywhere, computed values' own axes not counted."""
        return frozenset(self._leaves(AXIS))

    def values(self) -> frozenset[int]:
        """The computed values that appear anywhere."""
        return frozenset(self._leaves(VALUE))

    def _leaves(self, kind: int) -> Iterable[int]:
        for atom, _ in self.terms:
            if atom.kind == kind:
                yield atom.of
            elif atom.kind in (DIV, MOD):
                yield from atom.of._leaves(kind)

    def stride(self, of: int) -> int | None:
        """The step along an axis, or None where it is not the same everywhere."""
        step = 0
        for atom, k in self.terms:
            if atom.kind == AXIS and atom.of == of:
                step += k
            elif atom.kind in (DIV, MOD) and of in atom.of.axes():
                return None
        return step

    def rebuild(self, leaf: Callable[[Atom], Index]) -> Index:
        """The same expression with each axis and value replaced, simplified anew."""
        result = Index((), self.const)
        for atom, k in self.terms:
            if atom.kind in (AXIS, VALUE):
                result = result + leaf(atom) * k
            else:
                inner = atom.of.rebuild(leaf)
                result = (
                    result + (inner // atom.bound if atom.kind == DIV else inner % atom.bound) * k
                )
        return result

    def substitute(self, axes: Mapping[int, Index]) -> Index:
        """The expression with some axes replaced by expressions that stay within their extents."""
        return self.rebuild(
            lambda atom: (
                axes[atom.of] if atom.kind == AXIS and atom.of in axes else Index(((atom, 1),))
            )
        )

    def evaluate(self, axes: Mapping[int, int], values: Mapping[int, int] | None = None) -> int:
        """The number this is when its axes and values have these numbers."""
        total = self.const
        for atom, k in self.terms:
            if atom.kind == AXIS:
                total += k * axes[atom.of]
            elif atom.kind == VALUE:
                total += k * (values or {})[atom.of]
            else:
                inner = atom.of.evaluate(axes, values)
                total += k * (inner // atom.bound if atom.kind == DIV else inner % atom.bound)
        return total

    def __repr__(self) -> str:
        parts = []
        for atom, k in self.terms:
            shown = _show(atom)
            if k != 1:
                shown = f"{k}*({shown})" if atom.kind in (DIV, MOD) else f"{k}*{shown}"
            parts.append(shown)
        if self.const or not parts:
            parts.append(str(self.const))
        return " + ".join(parts)


ZERO = Index()


def axis(number: int, extent: int) -> Index:
    """The position along an axis; an axis of one element is always at 0."""
    return Index(((Atom(AXIS, number, extent), 1),)) if extent > 1 else ZERO


def value(number: int, bound: int) -> Index:
    """A computed value known to lie in [0, bound)."""
    return Index(((Atom(VALUE, number, bound), 1),)) if bound > 1 else ZERO


def constant(number: int) -> Index:
    return Index((), number)


def strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides, in elements, of a packed array of this shape, last axis fastest.

    >>> strides((2, 3, 4))
    (12, 4, 1)
    """
    steps, step = [], 1
    for extent in reversed(shape):
        steps.append(step)
        step *= extent
    return tuple(reversed(steps))


def flat(position: Sequence[Index], steps: Sequence[int]) -> Index:
    """One flat index from a position and its strides."""
    total = ZERO
    for index, step in zip(position, steps, strict=True):
        total = total + index * step
    return total


def unflatten(index: Index, shape: Sequence[int]) -> tuple[Index, ...]:
    """The position in a packed array of this shape that a flat index stands for."""
    return tuple(
        (index // step) % extent if extent > 1 else ZERO
        for extent, step in zip(shape, strides(shape), strict=True)
    )


def _show(atom: Atom) -> str:
    if atom.kind == AXIS:
        return f"a{atom.of}"
    if atom.kind == VALUE:
        return f"%{atom.of}:{atom.bound}"  # with its bound, as an axis with its extent
    inner = repr(atom.of) if len(atom.of.terms) == 1 and not atom.of.const else f"({atom.of!r})"
    if " " not in inner and "*" in inner:
        inner = f"({inner})"
    return f"{inner}{'//' if atom.kind == DIV else '%'}{atom.bound}"


def _inner(atom: Atom) -> Index:
    found: Index = atom.of
    return found


def _gather(sums: dict[Atom, int], const: int) -> Index:
    """The sum of these terms, with `m*(e % c) + m*c*(e // c)` put together as `m*e`."""
    for atom, m in sums.items():
        if atom.kind != MOD or not m:
            continue
        quotient = atom.of // atom.bound
        step = m * atom.bound
        if quotient.terms and all(sums.get(q) == k * step for q, k in quotient.terms):
            for q, _ in quotient.terms:
                del sums[q]
            del sums[atom]
            rest = _gather(sums, const - quotient.const * step)
            return rest + _inner(atom) * m
    return Index(tuple(sorted((atom, k) for atom, k in sums.items() if k)), const)


def _divide(e: Index, c: int) -> tuple[Index, Index]:
    """Quotient and remainder of e by c, rounding down."""
    if c <= 0:
        raise ValueError(f"index division by {c}; the divisor must be positive")
    if c == 1:
        return e, ZERO
    whole = Index(tuple((atom, k // c) for atom, k in e.terms if k % c == 0), e.const // c)
    rest = Index(tuple((atom, k) for atom, k in e.terms if k % c), e.const % c)
    low, high = rest.range()
    if low // c == high // c:
        return whole + low // c, rest - low // c * c
    # c = g * d: the part of the rest that is no multiple of g, if it lies in [0, g), is a
    # remainder by itself, and what is left divides by d alone.
    for g in sorted({_common(c, k) for _, k in rest.terms}, reverse=True):
        if g == 1:
            break
        small = Index(tuple((atom, k) for atom, k in rest.terms if k % g), rest.const % g)
        low, high = small.range()
        if low >= 0 and high < g:
            big = Index(
                tuple((atom, k // g) for atom, k in rest.terms if k % g == 0), rest.const // g
            )
            quotient, remainder = _divide(big, c // g)
            return whole + quotient, remainder * g + small
    return whole + _quotient(rest, c), _remainder(rest, c)


def _common(c: int, k: int) -> int:
    """Their greatest common divisor; of what is computed from sizes asked of these as they are
    where one divides the other."""
    if c % k == 0:
        return abs(k)
    return c if k % c == 0 else gcd(c, k)


def _quotient(e: Index, c: int) -> Index:
    """e // c where no multiple of c can be taken out."""
    if len(e.terms) == 1 and e.terms[0][1] == 1 and e.const == 0:
        atom = e.terms[0][0]
        if atom.kind == DIV:  # (x // a) // c
            return _inner(atom) // (atom.bound * c)
        if atom.kind == MOD and atom.bound % c == 0:  # (x % (c*d)) // c
            return (_inner(atom) // c) % (atom.bound // c)
    return Index(((Atom(DIV, e, c), 1),))


def _remainder(e: Index, c: int) -> Index:
    """e % c where no multiple of c can be taken out."""
    opened = Index((), e.const)
    changed = False
    for atom, k in e.terms:
        if atom.kind == MOD and k * atom.bound % c == 0:  # k*(x % m) is k*x, modulo c
            opened, changed = opened + atom.of * k, True
        else:
            opened = opened + Index(((atom, k),))
    return opened % c if changed else Index(((Atom(MOD, e, c), 1),))
