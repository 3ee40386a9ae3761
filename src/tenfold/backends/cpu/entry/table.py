"""The dispatch table of a callable: plans come and go while other threads call.

A plan is added or removed in place: a reader, which has the GIL, finds it or does not. To grow,
another table takes the place of this one in a single store. What a call has entered it keeps alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tenfold.backends.cpu.entry import ndarray as nd
from tenfold.backends.cpu.entry.bind import MethodDef, data_of, make_builtin
from tenfold.backends.cpu.entry.slots import DispatchWord, TableWord, put, take_out
from tenfold.backends.cpu.link.loader import Image
from tenfold.locks import Lock

if TYPE_CHECKING:
    from tenfold.backends.python_dispatch import PythonDispatch

WordArray = np.ndarray[Any, np.dtype[np.uint64]]

_LEAST = 8  # slots


class Record(Protocol):
    """What a plan is bound to, as a record in memory."""

    @property
    def address(self) -> int: ...

    @property
    def hash(self) -> int:
        """What `tn_hash` finds for its arguments."""
        ...


class Recorded(Protocol):
    """A callable over a plan that has a record."""

    @property
    def binding(self) -> Record: ...


class DispatchTable:
    """The words that `dispatch` reads, and the plans that they name."""

    __slots__ = ("plans", "used", "words")

    def __init__(self, plans: Iterable[Record]) -> None:
        self.plans = {plan.address: plan for plan in plans}
        size = _LEAST
        while size < 4 * len(self.plans):
            size *= 2
        self.words = np.zeros(TableWord.SLOTS + 2 * size, np.uint64)
        self.words[TableWord.MASK] = size - 1
        self.used = len(self.plans)  # slots, those of plans that were removed too
        for address, plan in self.plans.items():
            put(self.words, plan.hash, address)
        self._count()

    def add(self, plan: Record) -> bool:
        """One more plan; whether there was room for it."""
        if 2 * (self.used + 1) > int(self.words[TableWord.MASK]):
            return False
        self.used += 1
        self.plans[plan.address] = plan
        put(self.words, plan.hash, plan.address)
        self._count()
        return True

    def remove(self, plan: Record) -> None:
        take_out(self.words, plan.hash, plan.address)
        del self.plans[plan.address]
        self._count()

    def _count(self) -> None:
        self.words[TableWord.ONLY] = next(iter(self.plans)) if len(self.plans) == 1 else 0


class NativeDispatch(str):
    """What a callable over many plans is bound to. `slow` answers what none of them takes, and all
    that has keywords; it may be replaced at any time.

    The callable holds it in place of its module's name, hence a string (see `NativeBinding`).
    """

    _kept: Image
    _lock: Lock
    _method: MethodDef
    _slow: Callable[..., Any]
    _table: DispatchTable
    _words: WordArray

    def __new__(cls, gate: Image, slow: Callable[..., Any]) -> NativeDispatch:
        self = super().__new__(cls, "tenfold")
        self._kept = gate
        self._lock = Lock()  # held for moments, in which no other is taken
        self._words = np.zeros(len(DispatchWord), np.uint64)
        self.slow = slow
        self._publish(DispatchTable(()))
        return self

    def __len__(self) -> int:
        return len(self._table.plans)

    @property
    def slow(self) -> Callable[..., Any]:
        return self._slow

    @slow.setter
    def slow(self, slow: Callable[..., Any]) -> None:
        self._words[DispatchWord.SLOW] = id(slow)
        self._slow = slow

    def add(self, plan: Recorded) -> None:
        """Let one more plan answer calls."""
        with self._lock:
            binding, table = plan.binding, self._table
            if binding.address not in table.plans and not table.add(binding):
                self._publish(DispatchTable((*table.plans.values(), binding)))

    def remove(self, plan: Recorded) -> None:
        with self._lock:
            if plan.binding.address in self._table.plans:
                self._table.remove(plan.binding)

    def clear(self) -> None:
        with self._lock:
            self._publish(DispatchTable(()))

    def _publish(self, table: DispatchTable) -> None:
        self._words[DispatchWord.TABLE] = data_of(
            table.words
        )  # an aligned word: written in one step
        self._table = table


def make_dispatch(
    gate: Image, slow: Callable[..., Any], native: bool = True
) -> tuple[Callable[..., Any], NativeDispatch | PythonDispatch]:
    """A callable over no plan yet, and what plans are added to. They are bound with `decline` as
    their own slow path."""
    if not native or nd.supported() is not None:
        from tenfold.backends.python_dispatch import PythonDispatch

        plain = PythonDispatch(slow)
        return plain, plain
    return make_native_dispatch(gate, slow)


def make_native_dispatch(
    gate: Image, slow: Callable[..., Any]
) -> tuple[Callable[..., Any], NativeDispatch]:
    """The same where it is known that native code is supported."""
    made = NativeDispatch(gate, slow)
    address = gate.address("tn_dispatch")
    call, made._method = make_builtin(b"call", address, data_of(made._words), made)
    return call, made
