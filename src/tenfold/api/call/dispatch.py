"""Dispatch: which entry point answers a call of a function.

Calls that are arrays by position go straight to native code, which finds the plan by a hash of the
arrays' types (`backends/cpu/entry/dispatch`), however many there are. Calls of another form, with
containers or Python numbers, are taken apart by a function made for that form (`unpack`), whose
leaves go to a native table of the form's own. Where there are several such forms, the outline of a
call says which. What nothing takes goes on to `slow`, which binds, looks up or traces.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from inspect import Parameter, Signature
from typing import Any

from tenfold.api.call.entry_point import EntryPoint
from tenfold.api.call.unpack import Outlines, chooser, not_taken, outline_of, unpacker
from tenfold.backends.program import decline
from tenfold.frames import hide
from tenfold.locks import Lock

_EITHER = Parameter.POSITIONAL_OR_KEYWORD

Function = Callable[..., Any]


class _FormDispatch:
    """The entry points of one form, behind the function that takes its calls apart."""

    def __init__(self, first: EntryPoint) -> None:
        self.first = first
        self.native, self.table = first.program.dispatch(decline)
        self.call: Function = decline
        self._slow: Function = decline

    def hand_on(self, slow: Function) -> None:
        """Have calls that are not taken go to this slow path."""
        if slow is not self._slow:
            first, self._slow = self.first, slow
            self.call = unpacker(first.form, self.native, slow, first.apart, first.copied)


class EntryPoints:
    """The entry points of one function. `answer` is told what calls are answered by: native code,
    or Python where no call has come that native code takes."""

    def __init__(
        self,
        again: Function,
        slow: Function,
        answer: Callable[[Function], None],
        signature: Signature,
        static: Collection[str] = (),
    ) -> None:
        """`again` is the function itself, for calls that go in once more by position."""
        self._answer = answer
        self._signature = signature
        self._static = static
        self._last = _by_name(signature, again, slow)
        self._lock = Lock()  # held for moments, and by whoever holds any other
        self._known: set[EntryPoint] = set()
        self._flat: Any = None  # the native table of calls that are arrays by position
        self._behind = self._last  # what answers all others
        self._forms: dict[Any, _FormDispatch] = {}
        self._outlines: Outlines = {}
        self._choose: Function | None = None  # where there are several forms

    def __contains__(self, entry_point: EntryPoint) -> bool:
        return entry_point in self._known

    def __len__(self) -> int:
        return len(self._known)

    def add(self, entry_point: EntryPoint) -> None:
        """Let it answer calls from now on."""
        with self._lock:
            if entry_point in self._known:
                return
            if entry_point.flat:
                if self._flat is None:
                    call, self._flat = entry_point.program.dispatch(self._behind)
                    self._answer(call)
                self._flat.add(entry_point.bound)
            elif entry_point.form.small:
                self._unpack(entry_point).table.add(entry_point.bound)
            self._known.add(entry_point)

    def drop(self, entry_point: EntryPoint) -> None:
        """Let it answer no more. Any thread may say so."""
        with self._lock:
            if entry_point not in self._known:
                return
            self._known.remove(entry_point)
            if entry_point.flat:
                self._flat.remove(entry_point.bound)
            elif entry_point.form.small:
                form = self._forms[entry_point.key]
                form.table.remove(entry_point.bound)
                if not len(form.table):
                    del self._forms[entry_point.key]
                    if self._choose is not None:
                        self._list(form)
                    else:
                        self._stand_behind(self._last)

    def clear(self) -> None:
        """Hold none."""
        with self._lock:
            self._known.clear()
            self._forms.clear()
            self._outlines.clear()
            self._choose = None
            self._stand_behind(self._last)
            if self._flat is not None:
                self._flat.clear()

    def _unpack(self, entry_point: EntryPoint) -> _FormDispatch:
        """What takes calls of its form apart."""
        key = entry_point.key
        found = self._forms.get(key)
        if found is not None:
            return found
        made = self._forms[key] = _FormDispatch(entry_point)
        if len(self._forms) == 1 and self._choose is None:
            made.hand_on(self._last)
            self._stand_behind(made.call)
            return made
        new = [made]
        if self._choose is None:  # the second: from now on outlines tell them apart
            new = list(self._forms.values())
            self._choose = chooser(self._signature, self._static, self._outlines, self._last)
            self._stand_behind(self._choose)
        for form in new:
            form.hand_on(not_taken)
            self._list(form, form.call)
        return made

    def _list(self, form: _FormDispatch, *new: Function) -> None:
        """Have calls of its outline taken apart by this, or by it no more."""
        outline = outline_of(form.first.form, self._static)
        left = [call for call in self._outlines.pop(outline, ()) if call is not form.call]
        if new or left:
            self._outlines[outline] = [*new, *left]

    def _stand_behind(self, call: Function) -> None:
        """Have calls that are not arrays by position answered by this."""
        self._behind = call
        if self._flat is None:
            self._answer(call)
        else:
            self._flat.slow = call


def _by_name(signature: Signature, again: Function, slow: Function) -> Function:
    """What stands behind all entry points: calls with keywords that could be given by position go
    in again that way, for native code takes no keywords; all others go to `slow`."""
    names = ["" if p.kind is not _EITHER else p.name for p in signature.parameters.values()]

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if kwargs:
                first = len(args)
                rest = [kwargs[n] for n in names[first : first + len(kwargs)] if n in kwargs]
                if len(rest) == len(kwargs):
                    return again(*args, *rest)
            return slow(*args, **kwargs)
        except BaseException as error:
            hide(error)
            raise

    return call
