"""Numbers that are known while code is made, and may be others when it runs.

The extents, strides and offsets of a kernel are sizes that its caller gives. While a schedule is
chosen and code is written, each stands as a `Number`: it has the value of the kernel at hand, and
knows how it is computed from the sizes. Arithmetic gives Numbers. A comparison answers by the
value, and is noted as a fact; what was made is right for all sizes of which the facts hold, and
for these it would be made in the same way again. Where a plain integer is wanted, as a length or
the end of a range, the fact is that the Number is this very one: it is fixed. Nothing that depends
on a value can go unnoticed, since a Number is no int.

Some questions decide on speed alone (`prefers_less`): what was made is right for other sizes, too,
for which it would not be made. Who wants to try code with few elements goes by `admit`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Any

from tenfold.frozen import frozen

_HASH = 0x5EED
_SMALL = (-1, 0, 1)
_ONE_BY_ONE = 8  # looks at facts before they are written as a function


@frozen(order=True)
class Size:
    """The size of this number that a kernel is called with."""

    number: int

    def __repr__(self) -> str:
        return f"n{self.number}"


def _bit_length(a: int, _: int) -> int:
    return a.bit_length()


def _magnitude(a: int, _: int) -> int:
    return abs(a)


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "and": operator.and_,
    "bits": _bit_length,
    "abs": _magnitude,
    "eq": operator.eq,
    "lt": operator.lt,
    "le": operator.le,
}


@frozen
class Computed:
    """How a number is computed: an operation on two others, by their places."""

    operation: str
    first: int
    second: int


class Facts:
    """The numbers that were computed from some sizes, and what was found out about them.

    >>> facts = Facts([40])
    >>> n, = facts.sizes
    >>> n % 16 == 0, n * 2 > 64
    (False, True)
    >>> facts.hold([50]), facts.hold([48]), facts.hold([17])
    (True, False, False)
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(Number(self, at, value) for at, value in enumerate(sizes))
        self.made: list[Computed | int | float | None] = [None] * len(self.sizes)
        self.values: list[Any] = list(sizes)
        self.asked: dict[int, bool] = {}  # the answers, by place
        self.preferred: set[int] = set()  # those that decide on speed alone
        self.keys: dict[int, int] = {}  # the places of numbers that stay apart, by value
        self._known: dict[Any, int] = {}
        self._test: tuple[int, tuple[int, ...], Callable[[Sequence[int]], Any]] | None = None
        self._tried = 0  # how often they were looked at one by one

    def compute(self, operation: str, a: Any, b: Any) -> Number:
        at = self._at(operation, self.place(a), self.place(b))
        return Number(self, at, self.values[at])

    def ask(self, operation: str, a: Any, b: Any, preference: bool = False) -> bool:
        """What a comparison gives; it is a fact from now on. With `preference` it decides on speed
        alone, unless it is asked elsewhere, too."""
        at = self._at(operation, self.place(a), self.place(b))
        found = bool(self.values[at])
        if not preference:
            self.preferred.discard(at)
        elif at not in self.asked:
            self.preferred.add(at)
        self.asked[at] = found
        return found

    def hold(self, sizes: Sequence[int]) -> bool:
        """Whether all facts are true of other sizes."""
        return self.at(sizes, ()) is not None

    def admit(self, sizes: Sequence[int]) -> bool:
        """Whether what was made is right for other sizes, whatever it would be made like for
        them.

        >>> facts = Facts([4000])
        >>> n, = facts.sizes
        >>> prefers_less(n, 1000), n % 16 == 0
        (False, True)
        >>> facts.hold([160]), facts.admit([160]), facts.admit([161])
        (False, True, False)
        """
        return self.required().hold(sizes)

    def required(self) -> Facts:
        """Those that do not decide on speed alone."""
        made = copy(self)
        made.asked = {at: found for at, found in self.asked.items() if at not in self.preferred}
        made.preferred, made._test = set(), None
        return made

    def at(self, sizes: Sequence[int], wanted: tuple[int, ...]) -> tuple[Any, ...] | None:
        """What the numbers in these places are for other sizes; None where a fact does not hold.
        Once nothing is asked any more, the same places are asked for each time: then they are
        written as a function, which takes as long as some dozens of looks at them one by one."""
        kept = self._test
        try:
            if kept is None or kept[:2] != (len(self.asked), wanted):
                if self._tried < _ONE_BY_ONE:
                    self._tried += 1
                    return self._one_by_one(sizes, wanted)
                kept = self._test = len(self.asked), wanted, self._written(wanted)
            return kept[2](sizes)  # type: ignore[no-any-return]
        except ArithmeticError:  # what was no divisor there is one here
            return None

    def _one_by_one(self, sizes: Sequence[int], wanted: tuple[int, ...]) -> tuple[Any, ...] | None:
        made = self.made
        needed = {*wanted, *self.keys.values(), *self.asked}
        for at in range(len(made) - 1, len(self.sizes) - 1, -1):
            row = made[at]
            if at in needed and isinstance(row, Computed):
                needed.update((row.first, row.second))
        values: list[Any] = [*sizes, *made[len(self.sizes) :]]
        for at in sorted(needed):
            row = made[at]
            if isinstance(row, Computed):
                values[at] = _OPERATIONS[row.operation](values[row.first], values[row.second])
                if at in self.asked and bool(values[at]) != self.asked[at]:
                    return None
        if len({values[at] for at in self.keys.values()}) != len(self.keys):
            return None
        return tuple(values[at] for at in wanted)

    def _written(self, wanted: tuple[int, ...]) -> Callable[[Sequence[int]], Any]:
        """The facts as a function of sizes: it is called for each new one."""
        needed, lines = {*wanted, *self.keys.values()}, list[str]()
        for at in range(len(self.made) - 1, -1, -1):
            made = self.made[at]
            if not isinstance(made, Computed) or not (at in needed or at in self.asked):
                continue
            needed.update((made.first, made.second))
            text = _WRITTEN[made.operation].format(*map(self._operand, (made.first, made.second)))
            if at in self.asked:
                lines.append(f" if {'not ' if self.asked[at] else ''}{text}: return None")
            else:
                lines.append(f" n{at} = {text}")
        names = "".join(f"n{at}, " for at in range(len(self.sizes)))
        head = ["def test(sizes):", *([f" {names}= sizes"] if names else [])]
        lines[:0] = self._apart()
        result = "".join(f"{self._operand(at)}, " for at in wanted)
        made_here: dict[str, Any] = {}
        exec("\n".join([*head, *reversed(lines), f" return ({result})"]), made_here)
        found: Callable[[Sequence[int]], Any] = made_here["test"]
        return found

    def _apart(self) -> list[str]:
        """The test that keys are as many different numbers as they were."""
        if len(self.keys) < 2:
            return []
        names = ", ".join(map(self._operand, self.keys.values()))
        return [f" if len({{{names}}}) != {len(self.keys)}: return None"]

    def hashed(self, number: Number) -> int:
        """The hash of a number that is a key of a table."""
        # In tables the smallest are found as integers, which stand in kernels as they are; others
        # by how they are computed: that two of these are equal is seen only where it is asked.
        for small in _SMALL:
            if number == small:
                return hash(small)
        return hash((_HASH, number.at))

    def _operand(self, at: int) -> str:
        made = self.made[at]
        return repr(made) if isinstance(made, (int, float)) else f"n{at}"

    def __iter__(self) -> Iterator[str]:
        """Each fact, to be read."""
        for at, answer in self.asked.items():
            yield f"{'' if answer else 'not '}{self.show(at)}"

    def show(self, at: int) -> str:
        made = self.made[at]
        if made is None:
            return f"n{at}"
        if not isinstance(made, Computed):
            return str(made)
        return f"({_WRITTEN[made.operation].format(self.show(made.first), self.show(made.second))})"

    def place(self, x: Any) -> int:
        """Where a number stands."""
        if isinstance(x, Number):
            return x.at
        return self._add((type(x), x), x, x)

    def _at(self, operation: str, a: int, b: int) -> int:
        key = operation, a, b
        found = self._known.get(key)
        if found is not None:
            return found
        value = _OPERATIONS[operation](self.values[a], self.values[b])
        return self._add(key, Computed(operation, a, b), value)

    def _add(self, key: Any, made: Computed | int | float, value: Any) -> int:
        at = self._known.setdefault(key, len(self.made))
        if at == len(self.made):
            self.made.append(made)
            self.values.append(value)
        return at


class TableFacts(Facts):
    """Facts of numbers that tables find by their values, as they find integers.

    Which keys are equal is a fact, and that the others differ: from one another, and from the
    integers from -1 to `least`, which stand as they are. Other sizes make the same tables.

    >>> facts = TableFacts([40, 50], 4)
    >>> a, b = facts.sizes
    >>> len({a, b, b - 10})
    2
    >>> facts.hold([7, 17]), facts.hold([7, 18]), facts.hold([4, 14])
    (True, False, False)
    """

    def __init__(self, sizes: Sequence[int], least: int) -> None:
        super().__init__(sizes)
        self.least = least

    def tell_apart(self, integers: Iterable[Any]) -> None:
        """Tell keys apart from these integers as well: tables have them, too."""
        for n in integers:
            if type(n) is int and not -1 <= n <= self.least:
                first = self.keys.setdefault(n, self.place(n))
                if first != self.place(n):
                    self.ask("eq", Number(self, first, n), n)

    def hashed(self, number: Number) -> int:
        value, at = number.value, number.at
        first = self.keys.get(value)
        if first is None and not (number > self.least or number < -1):
            self.ask("eq", number, value)
        elif first is None:
            self.keys[value] = at
        elif first != at:
            self.ask("eq", number, Number(self, first, value))
        return hash(value)


_WRITTEN = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "floordiv": "{} // {}",
    "mod": "{} % {}",
    "shl": "{} << {}",
    "shr": "{} >> {}",
    "and": "{} & {}",
    "bits": "{}.bit_length()",
    "abs": "abs({})",
    "eq": "{} == {}",
    "lt": "{} < {}",
    "le": "{} <= {}",
}


class Number:
    """A number computed from sizes. Written into text it is the name of its register."""

    __slots__ = ("at", "facts", "value")

    def __init__(self, facts: Facts, at: int, value: Any) -> None:
        self.facts = facts
        self.at = at
        self.value = value

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, _PLAIN):
            return NotImplemented
        return self if _is(other, 0) else self.facts.compute("add", self, other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, _PLAIN):
            return NotImplemented
        if _is(other, 0):
            return 0
        return self if _is(other, 1) else self.facts.compute("mul", self, other)

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Any:
        if not isinstance(other, _PLAIN):
            return NotImplemented
        return self if _is(other, 0) else self.facts.compute("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.facts.compute("sub", other, self) if _plain(other) else NotImplemented

    def __neg__(self) -> Number:
        return self.facts.compute("sub", 0, self)

    def __abs__(self) -> Number:
        return self.facts.compute("abs", self, 0)

    def __floordiv__(self, other: Any) -> Any:
        if not isinstance(other, _PLAIN):
            return NotImplemented
        return self if _is(other, 1) else self.facts.compute("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self.facts.compute("floordiv", other, self) if _plain(other) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        if not isinstance(other, _PLAIN):
            return NotImplemented
        return 0 if _is(other, 1) else self.facts.compute("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self.facts.compute("mod", other, self) if _plain(other) else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        return self.facts.compute("div", self, other) if _plain(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return self.facts.compute("div", other, self) if _plain(other) else NotImplemented

    def __rlshift__(self, other: Any) -> Any:
        return self.facts.compute("shl", other, self) if _plain(other) else NotImplemented

    def __lshift__(self, other: Any) -> Any:
        return self.facts.compute("shl", self, other) if _plain(other) else NotImplemented

    def __rshift__(self, other: Any) -> Any:
        return self.facts.compute("shr", self, other) if _plain(other) else NotImplemented

    def __and__(self, other: Any) -> Any:
        return self.facts.compute("and", self, other) if _plain(other) else NotImplemented

    def bit_length(self) -> Number:
        return self.facts.compute("bits", self, 0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _PLAIN):
            return NotImplemented
        if isinstance(other, Number) and other.at == self.at:
            return True
        return self.facts.ask("eq", self, other)

    def __lt__(self, other: Any) -> bool:
        return self.facts.ask("lt", self, other) if _plain(other) else NotImplemented

    def __le__(self, other: Any) -> bool:
        return self.facts.ask("le", self, other) if _plain(other) else NotImplemented

    def __gt__(self, other: Any) -> bool:
        return self.facts.ask("lt", other, self) if _plain(other) else NotImplemented

    def __ge__(self, other: Any) -> bool:
        return self.facts.ask("le", other, self) if _plain(other) else NotImplemented

    def __hash__(self) -> int:
        return self.facts.hashed(self)

    def __bool__(self) -> bool:
        return self != 0

    def __index__(self) -> int:
        self.facts.ask("eq", self, self.value)
        return int(self.value)

    __int__ = __index__

    def __float__(self) -> float:
        self.facts.ask("eq", self, self.value)
        return float(self.value)

    def __str__(self) -> str:
        return f"%n{self.at}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __repr__(self) -> str:
        return f"{self.facts.show(self.at)}={self.value}"


_PLAIN = (int, float, Number)


def prefers_less(a: Any, b: Any) -> bool:
    """Whether a < b, where the answer decides on speed alone."""
    for n in (a, b):
        if isinstance(n, Number):
            return n.facts.ask("lt", a, b, preference=True)
    return bool(a < b)


def _plain(x: Any) -> bool:
    return isinstance(x, _PLAIN)


def _is(x: Any, number: int) -> bool:
    return type(x) is int and x == number
