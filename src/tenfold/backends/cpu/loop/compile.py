"""The functions of a plan's loops: text, name and object code, from memory, disk or LLVM."""

from __future__ import annotations

from collections.abc import Mapping
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

    texts, found = LoopTexts(plan, target, strict), {}
    with timed("compile"):
        for which in chosen:
            text = texts.text(*which)
            if text is not None:
                found[which] = _function(*text, target)
    return found


def _function(name: str, text: str, target: LLVMTarget) -> LoopFunction:
    made = _known.get((name, target.digest))
    if made is None:
        kept = f"loop-{name}-{target.digest}"
        data = find_object(kept)
        if data is None:
            from tenfold.backends.cpu.link.prelink import prelink
            from tenfold.backends.llvm.assemble import assemble

            data = prelink(assemble(text, target, loops=True), [name])
            keep_object(kept, data)
            count("loops_compiled")
        made = _known.setdefault((name, target.digest), LoopFunction(name, data))
    return made


def names(functions: Mapping[Which, LoopFunction]) -> dict[Which, str]:
    """The names of functions."""
    return {which: function.name for which, function in functions.items()}
