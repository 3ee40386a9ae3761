"""The dispatch table of a callable: plans come and go while other threads call.

A plan is added or removed in place: a reader, which has the GIL, finds it or does not. To grow,
another table takes the place of this one in a single store. What a call has entered it keeps alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tenfold.backends.cpu.entry import ndarray as nd
from tenfold.backends.cpu.entry.bind import Binding, Bound, Method, data_of, make_builtin
from tenfold.backends.cpu.entry.dispatch import Head, Word, hash_of, put, take_out
from tenfold.backends.cpu.link.loader import Image
from tenfold.backends.dispatch import PlainDispatch
from tenfold.locks import Lock

Words = np.ndarray[Any, np.dtype[np.uint64]]

_LEAST = 8  # slots


class Table:
    """The words that `dispatch` reads, and the plans that they name."""

    __slots__ = ("plans", "used", "words")

    def __init__(self, plans: Iterable[Binding]) -> None:
        self.plans = {plan.address: plan for plan in plans}
        size = _LEAST
        while size < 4 * len(self.plans):
            size *= 2
        self.words = np.zeros(Head.SLOTS + 2 * size, np.uint64)
        self.words[Head.MASK] = size - 1
        self.used = len(self.plans)  # slots, those of plans that were removed too
        for address, plan in self.plans.items():
            put(self.words, hash_of(plan.entry.arguments), address)
        self._count()

    def add(self, plan: Binding) -> bool:
        """One more plan; whether there was room for it."""
        if 2 * (self.used + 1) > int(self.words[Head.MASK]):
            return False
        self.used += 1
        self.plans[plan.address] = plan
        put(self.words, hash_of(plan.entry.arguments), plan.address)
        self._count()
        return True

    def remove(self, plan: Binding) -> None:
        take_out(self.words, hash_of(plan.entry.arguments), plan.address)
        del self.plans[plan.address]
        self._count()

    def _count(self) -> None:
        self.words[Head.ONLY] = next(iter(self.plans)) if len(self.plans) == 1 else 0


class Dispatch(str):
    """What a callable over many plans is bound to. `slow` answers what none of them takes, and all
    that has keywords; it may be replaced at any time.

    The callable holds it in place of its module's name, hence a string (see `Binding`).
    """

    _kept: Image
    _lock: Lock
    _method: Method
    _slow: Callable[..., Any]
    _table: Table
    _words: Words

    def __new__(cls, gate: Image, slow: Callable[..., Any]) -> Dispatch:
        self = super().__new__(cls, "tenfold")
        self._kept = gate
        self._lock = Lock()  # held for moments, in which no other is taken
        self._words = np.zeros(len(Word), np.uint64)
        self.slow = slow
        self._publish(Table(()))
        return self

    def __len__(self) -> int:
        return len(self._table.plans)

    @property
    def slow(self) -> Callable[..., Any]:
        return self._slow

    @slow.setter
    def slow(self, slow: Callable[..., Any]) -> None:
        self._words[Word.SLOW] = id(slow)
        self._slow = slow

    def add(self, plan: Bound) -> None:
        """Let one more plan answer calls."""
        with self._lock:
            binding, table = plan.binding, self._table
            if binding.address not in table.plans and not table.add(binding):
                self._publish(Table((*table.plans.values(), binding)))

    def remove(self, plan: Bound) -> None:
        with self._lock:
            if plan.binding.address in self._table.plans:
                self._table.remove(plan.binding)

    def clear(self) -> None:
        with self._lock:
            self._publish(Table(()))

    def _publish(self, table: Table) -> None:
        self._words[Word.TABLE] = data_of(table.words)  # an aligned word: written in one step
        self._table = table


def make_dispatch(
    gate: Image, slow: Callable[..., Any], native: bool = True
) -> tuple[Callable[..., Any], Dispatch | PlainDispatch]:
    """A callable over no plan yet, and what plans are added to. They are bound with `decline` as
    their own slow path."""
    if not native or nd.supported() is not None:
        plain = PlainDispatch(slow)
        return plain, plain
    made = Dispatch(gate, slow)
    address = gate.address("tn_dispatch")
    call, made._method = make_builtin(b"call", address, data_of(made._words), made)
    return call, made
