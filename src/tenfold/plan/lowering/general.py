"""Forms lowered once for all numbers: a form that is equal to an earlier one but for extents and
offsets gets its kernel and its sizes without being lowered again.

A form is lowered with Numbers (`kernel/ir/number`) for its extents, so whatever lowering, and the
backend's own passes after it, ask of them is a fact. Where the facts hold for other numbers, they
would ask the same and do the same; so all that is left is to compute the sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

from tenfold.frozen import frozen
from tenfold.graph.op import Table
from tenfold.kernel.ir.kernel import SCRATCH, Kernel
from tenfold.kernel.ir.number import Facts, Number, Size
from tenfold.kernel.ir.sized import EXTENT, OFFSET, SizedKernel, changed
from tenfold.locks import Lock
from tenfold.plan.lowering.lower import (
    Destination,
    Form,
    FormNode,
    LoweredKernel,
    Pairs,
    ScatterIndices,
    lower,
)
from tenfold.plan.lowering.shorthand import OFFSETS, Said, Shorthand, axes_of
from tenfold.types import DTYPES, TensorType

_MOST = 4096  # forms that are remembered
_ATTRIBUTE = "attribute"  # what a number is for, beside extents and offsets
_NUMBERS = (int, Size, Number)


@frozen
class LoweredForm:
    """A form's kernel with its sizes; the rest is as a `LoweredKernel` has it."""

    call: SizedKernel
    params: tuple[int | bytes, ...]
    in_place: Pairs
    instead: Pairs
    scratch: tuple[TensorType, ...]  # buffers of the kernel's own, behind all others


@frozen
class _General:
    """What was made of a form, for all numbers of which the facts hold."""

    facts: Facts
    lowered: LoweredKernel  # its kernel is general
    sizes: tuple[int, ...]  # their places among the facts' numbers

    def at(self, numbers: tuple[int, ...]) -> LoweredForm | None:
        """What it is for these numbers, if the facts hold."""
        sizes = self.facts.at(numbers, self.sizes)
        return None if sizes is None else self.sized(sizes)

    def sized(self, sizes: tuple[int, ...]) -> LoweredForm:
        made = self.lowered
        call = SizedKernel(made.kernel, sizes)
        scratch = tuple(
            [
                TensorType(DTYPES[b.dtype], (call.size(b.size),))
                for b in made.kernel.buffers
                if b.role == SCRATCH
            ]
        )
        return LoweredForm(call, made.params, made.in_place, made.instead, scratch)


class GeneralForm:
    """A form with sizes for its numbers, and what was made of it so far."""

    __slots__ = ("form", "made")

    def __init__(self, form: Form) -> None:
        self.form = form
        self.made: list[_General] = []


@frozen(eq=False)
class SizedForm:
    """A general form with its numbers."""

    general: GeneralForm
    numbers: tuple[int, ...]


class GeneralForms:
    """The forms that were lowered for one backend and target; `tune` is its."""

    def __init__(self, table: Table, tune: Callable[[Kernel], Kernel]) -> None:
        self.table = table
        self.tune = tune
        self._known: dict[Form, GeneralForm] = {}
        self._short: dict[Any, GeneralForm] = {}
        self._lock = Lock()

    def said(self, said: Said, types: Sequence[TensorType]) -> SizedForm:
        """A form, given by what it says, as a general one and its numbers; `types` are those that
        it names by number."""
        short = Shorthand(said, types)
        if not short.plain:
            return self.general(written(said, types))
        key = short.key
        with self._lock:
            known = self._short.pop(key, None)
            if known is not None:
                self._short[key] = known  # the last to be dropped
                return SizedForm(known, tuple(short.numbers))
        made = self.general(written(said, types))
        with self._lock:
            self._short[key] = made.general
            if len(self._short) > _MOST:
                del self._short[next(iter(self._short))]
        return made

    def general(self, form: Form) -> SizedForm:
        """A form as a general one and its numbers."""
        numbers: dict[tuple[str, int, int], Size] = {}
        types = [*form.inputs, *(n.type for n in form.nodes), *(t.into for t in form.targets)]
        ranks = axes_of([t.rank for t in types if t is not None])

        def number(role: str, n: int) -> Any:
            if role != OFFSET and -1 <= n <= 1:
                return index(n)
            if role == _ATTRIBUTE and 0 < n < ranks:  # the number of an axis
                return index(n)
            # Equal extents are one number. Which others happen to be equal says nothing.
            turn = 0 if role == EXTENT else len(numbers)
            return numbers.setdefault((role, turn, n), Size(len(numbers)))

        made = _changed(form, number)
        with self._lock:
            known = self._known.pop(made, None) or GeneralForm(made)
            self._known[made] = known  # the last to be dropped
            if len(self._known) > _MOST:
                del self._known[next(iter(self._known))]
        return SizedForm(known, tuple([n for _, _, n in numbers]))

    def lower(self, form: SizedForm) -> LoweredForm:
        """The kernel of a form and its sizes."""
        for one in tuple(form.general.made):
            found = one.at(form.numbers)
            if found is not None:
                return found
        made = self._lower(form.general.form, form.numbers)
        form.general.made.append(made)
        return made.sized(tuple([made.facts.values[at] for at in made.sizes]))

    def _lower(self, general: Form, values: tuple[int, ...]) -> _General:
        facts = Facts(values)
        form = _changed(general, lambda _, n: facts.sizes[n.number] if isinstance(n, Size) else n)
        lowered = lower(form, self.table)
        kernel = self.tune(lowered.kernel)
        sizes: dict[tuple[str, int], Size] = {}

        def size(role: str, n: Any) -> Any:
            if not isinstance(n, Number):
                return n
            for small in (-1, 0, 1) if role != OFFSET else ():
                if n == small:
                    return small
            return sizes.setdefault((role, n.at), Size(len(sizes)))

        kernel = changed(kernel, size, lambda: len(sizes))
        made = LoweredKernel(kernel, lowered.params, lowered.in_place, lowered.instead)
        return _General(facts, made, tuple([at for _, at in sizes]))


_every: dict[tuple[int, Callable[[Kernel], Kernel]], GeneralForms] = {}


def general_forms(table: Table, tune: Callable[[Kernel], Kernel]) -> GeneralForms:
    """The forms that were lowered by a table for a backend's `tune`, in this process."""
    key = id(table), tune
    return _every.get(key) or _every.setdefault(key, GeneralForms(table, tune))


def written(said: Said, types: Sequence[TensorType]) -> Form:
    """A form written out."""
    nodes, arriving, targets, reductions, extents = said
    return Form(
        tuple(
            [
                FormNode(op, given, reads, types[kind], reduces)
                for op, given, reads, kind, reduces in nodes
            ]
        ),
        tuple([types[kind] for kind in arriving]),
        tuple(
            [
                Destination(
                    node, place, None if kind is None else types[kind], starts, scatter, over
                )
                for node, place, kind, starts, scatter, over in targets
            ]
        ),
        reductions,
        extents,
    )


def _changed(form: Form, change: Callable[[str, Any], Any]) -> Form:
    """A form with its numbers changed: extents, and integers among attributes."""
    types: dict[TensorType, TensorType] = {}

    def typed(type: TensorType) -> TensorType:
        made = types.get(type)
        if made is None:
            shape = tuple([change(EXTENT, n) for n in type.shape])
            made = types[type] = TensorType(type.dtype, shape)
        return made

    def plain(value: Any, role: str = _ATTRIBUTE) -> Any:
        if type(value) is tuple:
            return tuple([plain(v, role) for v in value])
        return change(role, value) if type(value) in _NUMBERS else value

    def attributes(given: Any) -> Any:
        if type(given) is not tuple:  # the bits of a constant
            return given
        roles = ((name, OFFSET if name in OFFSETS else _ATTRIBUTE) for name, _ in given)
        return tuple([(n, plain(v, role)) for (n, role), (_, v) in zip(roles, given, strict=True)])

    def target(one: Destination) -> Destination:
        into = None if one.into is None else typed(one.into)
        starts = tuple([(who, change(EXTENT, limit)) for who, limit in one.starts])
        scatter = one.scatter
        if scatter is not None:
            scatter = ScatterIndices(scatter.op, attributes(scatter.attributes), scatter.indices)
        return Destination(one.node, one.place, into, starts, scatter, one.over)

    return Form(
        tuple(
            [
                FormNode(n.op, attributes(n.attributes), n.inputs, typed(n.type), n.reduces)
                for n in form.nodes
            ]
        ),
        tuple([typed(t) for t in form.inputs]),
        tuple([target(t) for t in form.targets]),
        form.reductions,
        tuple([change(EXTENT, n) for n in form.extents]),
    )
