"""Dispatch over programs on a GPU: native code first, for NumPy's arrays, then for those that lie
on the device; then Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.backends.cpu.entry.table import make_native_dispatch
from tenfold.backends.cuda.entry.bind import NativeCall
from tenfold.backends.cuda.entry.code import cpu_gate, entries
from tenfold.backends.python_dispatch import PythonDispatch


class CudaDispatch:
    """The tables of a callable: what one does not take goes on to the next."""

    def __init__(self, python: PythonDispatch) -> None:
        self._python = python
        call, self._kept = make_native_dispatch(entries(), python)
        self.call, self._staged = make_native_dispatch(cpu_gate(), call)

    def __len__(self) -> int:
        return len(self._python)

    @property
    def slow(self) -> Callable[..., Any]:
        return self._python.slow

    @slow.setter
    def slow(self, slow: Callable[..., Any]) -> None:
        self._python.slow = slow

    def add(self, plan: NativeCall) -> None:
        self._python.add(plan)
        for one in plan.kept:
            self._kept.add(one)
        if plan.staged is not None:
            self._staged.add(plan.staged)

    def remove(self, plan: NativeCall) -> None:
        self._python.remove(plan)
        for one in plan.kept:
            self._kept.remove(one)
        if plan.staged is not None:
            self._staged.remove(plan.staged)

    def clear(self) -> None:
        self._python.clear()
        self._kept.clear()
        self._staged.clear()
