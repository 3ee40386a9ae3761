"""The functions of a plan's loops: text, name and object code, from memory, disk or LLVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

from tenfold.backends.cpu.link.loader import Image, load
from tenfold.backends.cpu.run.fixed import find_object, keep_object
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.plan import Plan
from tenfold.plan.steps.loops import Which, native_loops
from tenfold.stats import count, timed


class LoopFunction:
    """The object code of a loop, linked, and its place in memory once it is asked for."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name, self.data = name, data
        self._image: Image | None = None

    @property
    def address(self) -> int:
        if self._image is None:
            self._image = load([self.data], [self.name])
        return self._image.address(self.name)


_known: WeakValueDictionary[tuple[str, str], LoopFunction] = WeakValueDictionary()


def loop_functions(plan: Plan, target: LLVMTarget, strict: bool) -> dict[Which, LoopFunction]:
    """The function of each loop of a plan that gets one."""
    chosen = [which for which, reason in native_loops(plan).items() if not reason]
    if not chosen:
        return {}
    from tenfold.backends.cpu.loop.text import LoopTexts

    texts, functions = LoopTexts(plan, target, strict), _Functions(target)
    named: dict[Which, str] = {}
    with timed("compile"):
        for which in chosen:
            text = texts.text(*which)
            if text is not None:
                named[which] = functions.add(*text)
        made = functions.finish()
    return {which: made[name] for which, name in named.items()}


class _Functions:
    """Functions that a plan asks for, each text once. What neither memory nor disk has is compiled
    beside, while the text of the next is written."""

    def __init__(self, target: LLVMTarget) -> None:
        self._target = target
        self._made: dict[str, LoopFunction] = {}
        self._waiting: dict[str, None] = {}
        self._assembly: Any = None

    def add(self, name: str, text: str) -> str:
        """Have one more made; its name."""
        if name in self._made or name in self._waiting:
            return name
        found = _known.get((name, self._target.digest))
        if found is None:
            data = find_object(self._kept(name))
            found = None if data is None else self._note(name, data)
        if found is not None:
            self._made[name] = found
            return name
        if self._assembly is None:
            from tenfold.backends.llvm.assemble import Assembly

            self._assembly = Assembly(self._target, loops=True)
        self._waiting[name] = None
        self._assembly.add(text)
        return name

    def finish(self) -> dict[str, LoopFunction]:
        """All of them, by name."""
        if self._assembly is not None:
            from tenfold.backends.cpu.link.prelink import prelink

            for name, raw in zip(self._waiting, self._assembly.finish(), strict=True):
                data = prelink(raw, [name])
                keep_object(self._kept(name), data)
                count("loops_compiled")
                self._made[name] = self._note(name, data)
        return self._made

    def _kept(self, name: str) -> str:
        return f"loop-{name}-{self._target.digest}"

    def _note(self, name: str, data: bytes) -> LoopFunction:
        return _known.setdefault((name, self._target.digest), LoopFunction(name, data))


def names(functions: Mapping[Which, LoopFunction]) -> dict[Which, str]:
    """The names of functions."""
    return {which: function.name for which, function in functions.items()}
