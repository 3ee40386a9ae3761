"""Loops that the program ends: the body traced until all that it carries keeps its type.

A round starts from the variables that no round changes as they are, and from parameters for the
rest. Which those are is found by tracing: what a round changed is carried in the next attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from tenfold.errors import ControlError, TenfoldError
from tenfold.frozen import mutable
from tenfold.trace.array import Array
from tenfold.trace.containers import Structure, flatten, matched
from tenfold.trace.control.agree import LeafForm, LoopState, difference, form, grow
from tenfold.trace.control.branch import truth
from tenfold.trace.control.inner import shared, trace_inner
from tenfold.trace.control.loop import start, while_node
from tenfold.trace.convert.agreement import Common, Disagreement, filled, form_of
from tenfold.trace.convert.branches import Lost, decide, is_alias, returns
from tenfold.trace.convert.exits import AT_END, BREAK, CONTINUE, END, NOTHING, RETURN, Exit
from tenfold.trace.convert.region import Cells, Region, trace_region
from tenfold.trace.convert.statements import Site
from tenfold.trace.exact import same
from tenfold.trace.host.array import HostArray
from tenfold.trace.operand import is_operand, weak_of
from tenfold.trace.scope import Scope, current
from tenfold.trace.source import describe, here
from tenfold.trace.surface.emit import is_traced

_NUMBERS = (bool, int, float, complex)
_LEAVING = frozenset((BREAK, RETURN))
_GO, _KIND, _VALUE, _COUNTER = "@go", "@kind", "@value", "@counter"


@mutable
class Slot:
    """Something that a loop carries: what it starts from, and its forms inside."""

    structure: Structure
    leaves: list[Any]
    forms: list[LeafForm]

    @staticmethod
    def of(value: Any) -> Slot | None:
        with suppress(TenfoldError):
            structure, leaves = flatten(value)
            if leaves and all(is_operand(leaf) for leaf in leaves):
                return Slot(structure, leaves, [form(leaf) for leaf in leaves])
        return None

    def after(self, value: Any) -> tuple[list[Any], list[LeafForm]]:
        """The leaves of what a round made of it, and the forms that hold both."""
        if value is NOTHING:
            raise Disagreement("a round may leave it without a value")
        structure, leaves = flatten(value)
        found = matched(self.structure, structure, leaves)
        if found is None:
            path, a, b = difference(self.structure, structure, "it")
            raise Disagreement(f"{path} is {a} before a round, {b} after it")
        forms = []
        for first, before, leaf in zip(self.leaves, self.forms, found, strict=True):
            if not is_operand(leaf):
                raise Disagreement(f"a round makes it a {type(leaf).__name__}")
            now = form_of(leaf)
            grown = grow(before, now, weak_of(first) is not None)
            if grown is None:
                raise Disagreement(f"it is {before} before a round, {now} after it")
            forms.append(grown)
        return found, forms


class Loop:
    """A loop from some round on. `body` is a round, given its number if `counter` is; `again`
    says whether another follows that one; `exit` is how the round before was left, and `go`
    whether one is to follow, if that is known. With `length` the number of rounds is known."""

    def __init__(
        self,
        site: Site,
        label: str,
        cells: Cells,
        body: Callable[[Any], Any],
        again: Callable[[Any], Any],
        go: Any,
        exit: Exit = AT_END,
        counter: Any = None,
        length: int | None = None,
        written: tuple[Array, ...] = (),
        lost: Lost = lambda name, why: None,
        fixed: bool = False,
    ) -> None:
        self.site, self.label, self.cells = site, label, cells
        self.body, self.again, self.length = body, again, length
        self.ending: Any = None  # what `again` says
        self.exit = Exit(exit.kinds, _stayed(exit), exit.value)
        if not exit.known:
            go = self.following(exit, None if counter is None else counter - 1)
        self.go = go if is_traced(go) else bool(go)
        self.aliased = cells.aliased()
        self.before = cells.read()
        self.slots: dict[Any, Slot] = {}
        self.arrays: dict[Any, Array] = {}
        self.lost: set[str] = set()
        self.tell = lost
        self.fixed = fixed  # whether no round may be given a Python number by another
        self.hidden: set[str] = set()  # variables that rounds are not given
        self.returned: Common | None = None
        self.inside: dict[Any, Any] = {}  # the parameters of a round
        self.began: dict[Any, list[int]] = {}  # and their values
        if length is None:
            self.carry(_GO, self.go)
        if counter is not None:
            self.carry(_COUNTER, counter)
        for name in sorted(site.changed):
            first = self.before.get(name, NOTHING)
            if type(first) in _NUMBERS and not fixed:
                self.carry(name, first)
            elif is_traced(first) and not first.shape:  # an array would be updated in place
                self.carry(name, self.before[name])
        for array in written:
            self.carry_array(array)

    def carry(self, key: Any, value: Any) -> bool:
        """Carry a value from now on, if a program can."""
        slot = Slot.of(value)
        if slot is not None:
            self.slots[key] = slot
        return slot is not None

    def carry_array(self, array: Array) -> None:
        self.carry(id(array), array)
        self.arrays[id(array)] = array

    def lose(self, name: str, why: str) -> None:
        """Let a variable have no value when a round starts, and after the loop."""
        self.lost.add(name)
        self.tell(name, why)

    @property
    def carried(self) -> list[str]:
        """The variables that are carried."""
        return [k for k in self.slots if isinstance(k, str) and not k.startswith("@")]

    # -- tracing

    def run(self) -> Exit:
        """Make the loop a node: how it is left."""
        scope = current()
        assert scope is not None
        known = len(scope.trace.callbacks)
        while True:
            region = self.round()
            outputs = self.settle(region)
            if outputs is not None:
                break
            scope.trace.forget(known)
        for key, slot in self.slots.items():
            for leaf, wanted in zip(outputs[key], slot.forms, strict=True):
                region.give(leaf, wanted)
        values = iter(self.node(region))
        made = {}
        for key, slot in self.slots.items():
            arrays = [Array(scope, next(values), weak=f.weak) for f in slot.forms]
            for array, *leaves in zip(arrays, slot.leaves, outputs[key], strict=True):
                own = NOTHING if key in self.aliased else leaves[0]
                array._readonly = any(is_alias(leaf, region, own) for leaf in leaves)
            made[key] = slot.structure.unflatten(arrays)
        self.forsake(region)
        self.cells.write({name: made[name] for name in self.carried if name in self.before})
        self.cells.write(dict.fromkeys(self.lost, NOTHING))
        for key, array in self.arrays.items():
            array._update(made[key]._value)
        kinds = (self.exit.kinds | region.exit.kinds) & _LEAVING
        if self.ending is not True:
            kinds |= {END}
        value = self.exit.value
        if self.returned is not None:
            value = self.returned.value(list(made.get(_VALUE, ())))
        return Exit(kinds, made.get(_KIND, END), value).without()

    def round(self) -> Region:
        """Trace the body once."""
        inside = self.inside = {}
        self.ending = None

        def started(scope: Scope) -> dict[str, Any]:
            for key, slot in self.slots.items():
                parameters = [
                    Array(scope, scope.builder.parameter(f.type), weak=f.weak) for f in slot.forms
                ]
                inside[key] = slot.structure.unflatten(parameters)
                self.began[key] = [p._value for p in parameters]
            values = {**self.before, **{name: inside[name] for name in self.carried}}
            return {**values, **dict.fromkeys(self.lost | self.hidden, NOTHING)}

        def part() -> Exit:
            counter = inside.get(_COUNTER)
            exit = self.body(counter) or AT_END
            self.now: dict[Any, Any] = {_KIND: _stayed(exit)}
            if counter is not None:
                self.now[_COUNTER] = counter + 1
            if _GO in self.slots:
                self.now[_GO] = self.following(exit, counter)
            return Exit(exit.kinds, (exit.kind, *self.now.values()), exit.value)

        region = trace_region(
            self.label,
            self.cells,
            started,
            part,
            lambda scope: [(array, inside[key]) for key, array in self.arrays.items()],
            self.aliased,
        )
        kind = region.exit.kind[0]
        region.exit = Exit(region.exit.kinds, kind, region.exit.value)
        return region

    def forsake(self, region: Region) -> None:
        """See to arrays that rounds update under a variable which they bind anew, too: nobody can
        say which of them has which value afterwards."""
        for name in self.carried:
            slot, inside = self.slots[name], flatten(self.inside[name])[1]
            for first, parameter, value in zip(slot.leaves, inside, self.began[name], strict=True):
                if parameter._value == value or not isinstance(first, Array) or not first.shape:
                    continue
                if isinstance(first, HostArray):
                    first._enter()
                if first._argument is not None or first._view is not None:
                    raise ControlError(
                        f"the {self.site.kind} of line {self.site.line} updates {name} in place "
                        "and binds it anew, too, so that which array is updated depends on the "
                        "rounds",
                        where=describe(here()),
                        fix=f"copy it before: {name} = {name}.copy()",
                    )
                first._scope = region.inner.scope  # which is closed: a use by another name fails

    def following(self, exit: Exit, counter: Any) -> Any:
        """Whether another round follows one that was left so."""
        if not exit.kinds & _LEAVING:
            self.ending = self.again(counter)
            return self.ending
        if exit.kinds <= _LEAVING:
            return False

        def asked() -> Exit:
            self.ending = self.again(counter)
            return Exit.by(RETURN, self.ending)

        stays = _stayed(exit) == END
        quiet: Lost = lambda name, why: None  # noqa: E731  what is lost shows after the loop
        never = lambda: Exit.by(RETURN, False)  # noqa: E731
        found, _ = decide(self.site, self.label, stays, asked, never, self.cells, quiet)
        return found.value

    def settle(self, region: Region) -> dict[Any, list[Any]] | None:
        """The leaves that a round gives for each slot; None where another attempt is needed."""
        known = True
        outputs: dict[Any, list[Any]] = {}
        for name, first in self.before.items():
            after = region.values[name]
            if name in self.lost:
                continue
            if name in self.slots:
                known &= self.keeps(name, after, outputs)
            elif after is first or (not is_traced(after) and _same(after, first)):
                continue
            elif first is NOTHING:
                self.lose(name, "it is set inside the loop only, and there may be no round")
            else:
                if self.fixed and type(first) in _NUMBERS:
                    self.hidden.add(name)
                    self.tell(name, "it is a Python number that a round makes of the last one")
                if not self.carry(name, first):
                    self.lose(name, f"each round changes it, a {type(first).__name__}")
                known = False
        for key, (array, now) in region.updated.items():
            outputs[key] = [now]
            if key not in self.arrays:
                self.carry_array(array)
                known = False
        for key in self.arrays.keys() - region.updated.keys():
            del self.arrays[key], self.slots[key]
            known = False
        known &= self.settle_exit(region.exit, outputs)
        if _COUNTER in self.slots:
            outputs[_COUNTER] = [self.now[_COUNTER]]
        if _GO in self.slots:
            go = self.now[_GO]
            outputs[_GO] = [go if is_traced(go) else bool(go)]
        return outputs if known else None

    def keeps(self, name: str, after: Any, outputs: dict[Any, list[Any]]) -> bool:
        """Whether a variable that is carried keeps its forms."""
        slot = self.slots[name]
        try:
            outputs[name], forms = slot.after(after)
        except Disagreement as why:
            del self.slots[name]
            self.lose(name, str(why))
            return False
        if forms == slot.forms:
            return True
        slot.forms = forms
        return False

    def settle_exit(self, exit: Exit, outputs: dict[Any, list[Any]]) -> bool:
        known = True
        if not (exit.kinds & _LEAVING or self.exit.kinds & _LEAVING):
            return True
        if _GO not in self.slots:
            self.length = None
            self.carry(_GO, self.go)
            known = False
        if _KIND not in self.slots:
            self.carry(_KIND, self.exit.kind)
            known = False
        outputs[_KIND] = [self.now[_KIND]]
        if exit.value is NOTHING and self.exit.value is NOTHING:
            return known
        return self.settle_value(exit.value, outputs) and known

    def settle_value(self, value: Any, outputs: dict[Any, list[Any]]) -> bool:
        """Carry what is returned, where it is not the same Python value in every round."""
        first = self.exit.value
        if value is NOTHING:
            together = filled(first, False)
        elif first is NOTHING:
            together = filled(value, True)
        else:
            together = returns(self.site, first, value)
        self.returned = together
        pairs = [
            (a, b, f)
            for a, b, f in zip(*together.leaves, together.forms, strict=True)
            if f is not None
        ]
        if not pairs:
            return True
        forms = [f for _, _, f in pairs]
        outputs[_VALUE] = [b for _, b, _ in pairs]
        slot = self.slots.get(_VALUE)
        if slot is not None and slot.forms == forms:
            return True
        starts = [a for a, _, _ in pairs]
        self.slots[_VALUE] = Slot(flatten(tuple(starts))[0], starts, forms)
        return False

    # -- the node

    def node(self, region: Region) -> tuple[int, ...]:
        scope = current()
        assert scope is not None
        leaves = [leaf for slot in self.slots.values() for leaf in slot.leaves]
        forms = tuple([f for slot in self.slots.values() for f in slot.forms])
        state = replace(LoopState.of(tuple(leaves), "state"), forms=forms)
        if self.length is not None:
            captures = shared((region.inner,))
            attributes = {
                "captures": len(captures),
                "carries": len(forms),
                "length": self.length,
                "reverse": False,
                "unroll": 1,
            }
            inputs = (*captures, *start(state, scope))
            return scope.node("scan", inputs, attributes, [region.inner.close(captures)])
        before = list(self.slots)[: list(self.slots).index(_GO)]
        place = sum(len(self.slots[key].forms) for key in before)

        def test(inner: Scope) -> Any:
            asked = state.arguments(inner)[place]
            return Array(inner, truth("the loop's test", asked, inner))

        return while_node(state, region.inner, trace_inner(self.label, test))


def _stayed(exit: Exit) -> Any:
    """The kind of an exit in a loop, where going on is the same as coming to the end."""
    if exit.kinds <= {END, CONTINUE}:
        return END
    return (
        exit.kind if CONTINUE not in exit.kinds else either(exit.kind == CONTINUE, END, exit.kind)
    )


def either(test: Any, one: Any, other: Any) -> Any:
    """One of two kinds."""
    found: Any = np.where(test, one, other)
    found._weak = int
    return found


def _same(one: Any, other: Any) -> bool:
    return not isinstance(one, np.ndarray | Array) and same(one, other)
