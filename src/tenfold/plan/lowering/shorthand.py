"""Forms in short: what a form says but for its numbers, found without making the form.

A round of an unrolled loop mostly has the forms of the round before with other extents and offsets.
Its general form is then found by a flat tuple, in which a number that will be a size stands by its
place, and whose other parts are as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.plan.lowering.lower import Place, ScatterIndices
from tenfold.types import Shape, TensorType

# What a FormNode says, with the number of its type: most forms have been seen before, and plain
# tuples are found in no time.
FormKey = tuple[str, Any, tuple[int, ...], int, bool]
TargetKey = tuple[
    int, Place, int | None, tuple[tuple[int | None, int], ...], ScatterIndices | None, int
]
# Nodes, numbers of the inputs' types, targets, reductions, extents.
Said = tuple[
    tuple[FormKey, ...],
    tuple[int, ...],
    tuple[TargetKey, ...],
    tuple[tuple[int, Place], ...],
    tuple[int, ...],
]

OFFSETS = ("starts", "stops")  # attributes that are offsets, 0 and 1 among them


def axes_of(ranks: Sequence[int]) -> int:
    """Integers below this one may be axes, where these are the ranks of a form's types."""
    return max([2, *ranks])


class Shorthand:
    """A form in short, and its numbers in the order in which `GeneralForms` numbers sizes. Only
    plain integers are written down: `plain` says whether there are no others."""

    def __init__(self, said: Said, types: Sequence[TensorType]) -> None:
        nodes, arriving, targets, reductions, extents = said
        self.numbers: list[int] = []
        self.plain = True
        self._places: dict[int, int] = {}  # of extents: equal ones are one number
        self._types = types
        self._parts: list[Any] = [len(nodes), len(arriving), len(targets), reductions]
        kinds = [node[3] for node in nodes]
        kinds += arriving
        kinds += [target[2] for target in targets if target[2] is not None]
        self._axes = axes_of([types[kind].rank for kind in kinds])
        for op, given, reads, kind, reduces in nodes:
            self._parts += op, reads, reduces
            self._attributes(given)
            self._type(kind)
        for kind in arriving:
            self._type(kind)
        for node, place, into, starts, scatter, over in targets:
            self.plain = self.plain and scatter is None
            self._parts += node, place, over, into is None, tuple([who for who, _ in starts])
            if into is not None:
                self._type(into)
            self._extents(tuple([limit for _, limit in starts]))
        self._extents(extents)

    @property
    def key(self) -> tuple[Any, ...]:
        return tuple(self._parts)

    def _type(self, kind: int) -> None:
        type = self._types[kind]
        self._parts += type.dtype, len(type.shape)
        self._extents(type.shape)

    def _extents(self, shape: Shape) -> None:
        places, numbers = self._places, self.numbers
        for n in shape:
            if type(n) is not int:
                self.plain = False
            elif not -1 <= n <= 1:
                place = places.get(n)
                if place is None:
                    place = places[n] = len(numbers)
                    numbers.append(n)
                n = place + 2
            self._parts.append(n)

    def _attributes(self, given: Any) -> None:
        if type(given) is not tuple:  # the bits of a constant, or none
            self._parts.append(given)
            return
        for name, value in given:
            self._parts.append(name)
            self._value(value, name in OFFSETS)

    def _value(self, value: Any, offset: bool) -> None:
        if type(value) is tuple:
            self._parts += "(", len(value)
            for one in value:
                self._value(one, offset)
        elif type(value) is not int:
            self.plain = self.plain and type(value) in (bool, str, bytes)
            self._parts.append(value)
        elif offset or not (-1 <= value <= 1 or 0 < value < self._axes):
            self._parts.append(None)
            self.numbers.append(value)
        else:
            self._parts.append(value)
