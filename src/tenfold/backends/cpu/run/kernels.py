"""Kernels in this process: each distinct one is compiled once and shared by all who call it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from tenfold.backends.cpu.library.routine import routine_imports, routine_symbol
from tenfold.backends.cpu.link.loader import Image, load
from tenfold.backends.cpu.run.fixed import (
    EXPORTS,
    STEPS,
    find_object,
    fixed,
    keep_object,
    make_ahead,
)
from tenfold.backends.cpu.threads.pool import thread_pool
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.frozen import mutable
from tenfold.locks import Lock, once
from tenfold.stats import count, timed

if TYPE_CHECKING:
    from tenfold.backends.cpu.link.compile import Compilation, CompiledKernel, Module
    from tenfold.backends.cpu.threads.cut import KernelPlace
    from tenfold.graph.op import Types
    from tenfold.kernel.ir.sized import SizedKernel


@mutable(weak=True)
class KernelCode:
    """A compiled kernel in memory; the image, which others may share, lives as long as it does."""

    compiled: CompiledKernel
    image: Image
    module: Module | None = None  # the object code it came in, to be written to a file
    first: KernelCode | None = None  # of the same text, whose image it is

    def place(self, address: int | None = None) -> KernelPlace:
        """Where it lies, unless that is left open, and where it may be cut."""
        from tenfold.backends.cpu.threads.cut import KernelPlace

        schedule = self.compiled.schedule
        if address is None:
            address = self.image.address(self.compiled.name)
        return KernelPlace(address, schedule.cuttable, schedule.grain, self.compiled.polls)


class KernelCodes:
    """The codes of one kernel for other sizes, the sizes it is called with, and who compiles code
    that was foreseen, as long as nobody has asked for it."""

    def __init__(self) -> None:
        from tenfold.backends.cpu.run.ahead import Course

        self.codes: list[KernelCode] = []
        self.course = Course()
        self.begun: Request | None = None

    def at(self, sizes: Sequence[int]) -> KernelCode | None:
        """The code for these sizes, if it is there."""
        for n, code in enumerate(self.codes):
            if code.compiled.facts.hold(sizes):
                if n:  # the next sizes are likely alike
                    self.codes.insert(0, self.codes.pop(n))
                return code
        return None


_MOST = 4096  # kernels that are kept without a plan that calls them
_known: dict[tuple[str, str, bool], KernelCodes] = {}
# Code by its text: other sizes, of which other facts hold, may come to the same.
_named: WeakValueDictionary[tuple[str, str], KernelCode] = WeakValueDictionary()
_lock = Lock()


class Request:
    """The code of kernels for their sizes. What is new is compiled while more is asked for, all of
    it for one image."""

    def __init__(self, target: LLVMTarget, strict: bool) -> None:
        self._target, self._strict = target, strict
        self._found: dict[SizedKernel, KernelCode] = {}
        self._new: dict[SizedKernel, CompiledKernel] = {}
        self._compilation: Compilation | None = None
        self._borrows = False

    def add(self, call: SizedKernel) -> None:
        """Ask for one more."""
        if call in self._found or call in self._new:
            return
        code = self._code(call)
        if code is not None:
            self._found[call] = code
            return
        from tenfold.backends.cpu.link.compile import Compilation

        with timed("compile"):
            if self._compilation is None:
                self._compilation = Compilation(self._target, self._strict)
            text, compiled = self._compilation.prepare(call)
            if text is not None:
                first = _named.get((text.name, self._target.digest))
                if first is not None:
                    self._hold(call, KernelCode(compiled, first.image, first.module, first))
                    return
                data = find_object(self._name(text.name))
                if data is not None:
                    self._bring(call, compiled, data)
                    return
            if self._compilation.include(text, compiled):
                count("kernels_compiled")
            self._new[call] = compiled

    def borrow(self, call: SizedKernel, code: KernelCode) -> None:
        """Have a call served by code that it would not be compiled to, but which is right for
        it."""
        self._found[call], self._borrows = code, True

    def add_routine(self, name: str, types: Types, attributes: Mapping[str, Any]) -> None:
        """Have a routine made meanwhile."""
        make_ahead(routine_symbol(name, types, attributes, self._target), self._target)

    def _code(self, call: SizedKernel) -> KernelCode | None:
        """The code of a kernel in memory, or on its way there."""
        with _lock:
            codes = self._codes(call)
            code, begun = codes.at(call.sizes), codes.begun
        if code is not None or begun is None:
            return code
        begun.take()
        with _lock:
            return codes.at(call.sizes)

    def begin(self) -> None:
        """Compile all that is new, for whoever asks for it first."""
        if self._compilation is None or not self._new:
            return
        self._compilation.begin()
        with _lock:
            for call in self._new:
                self._codes(call).begun = self

    def take(self) -> None:
        """Take in what was begun."""
        with _lock:
            for call in self._new:
                self._codes(call).begun = None
            compilation, self._compilation = self._compilation, None
        if compilation is not None:
            self._take_in(compilation)

    def _name(self, kernel: str) -> str:
        return f"kernel-{kernel}-{self._target.digest}"

    def _bring(self, call: SizedKernel, compiled: CompiledKernel, data: bytes) -> None:
        """Use code that another process compiled, for other sizes say."""
        from tenfold.backends.cpu.link.compile import Module

        image = load([data], [compiled.name])
        self._hold(call, KernelCode(compiled, image, Module(data, (compiled,))))

    def _hold(self, call: SizedKernel, code: KernelCode) -> None:
        with _lock:
            code = self._found[call] = self._shared(code)
            self._codes(call).codes.append(code)

    def _shared(self, code: KernelCode) -> KernelCode:
        """The code, with the image of the first that has its text: in a plan a name is one
        address."""
        first = _named.setdefault((code.compiled.name, self._target.digest), code)
        if first is code or first is code.first:
            return code
        return KernelCode(code.compiled, first.image, first.module, first)

    @property
    def compiled(self) -> bool:
        """Whether any of it is new to this process."""
        return self._compilation is not None

    def drop(self) -> None:
        """Have no more compiled: nobody will ask."""
        if self._compilation is not None:
            self._compilation.drop()

    def finish(self, calls: Sequence[SizedKernel]) -> Mapping[SizedKernel, KernelCode]:
        """The code of these, asked for before or not."""
        for call in calls:
            self.add(call)
        count("kernels_reused", len({id(code) for code in self._found.values()}))
        if self._compilation is not None and self._new:
            self._take_in(self._compilation)
        if not self._borrows:
            self._foresee(calls)
        with _lock:
            while len(_known) > _MOST:
                del _known[next(iter(_known))]
        return {call: self._found[call] for call in calls}

    def _foresee(self, calls: Sequence[SizedKernel]) -> None:
        """Begin to compile what is asked for next, where sizes grow step by step."""
        from tenfold.backends.cpu.run.ahead import coming

        ahead = Request(self._target, self._strict)
        for call in calls:
            with _lock:
                step = self._codes(call).course.follow(call)
            made: list[CompiledKernel] = []
            for later in coming(call, step) if step else ():
                same = later.kernel is call.kernel
                if same and any(one.facts.hold(later.sizes) for one in made):
                    continue
                ahead.add(later)
                if same and later in ahead._new:
                    made.append(ahead._new[later])
        ahead.begin()

    def _take_in(self, compilation: Compilation) -> None:
        with timed("compile"):
            module = compilation.finish()
        made = {one.name: one for one in module.kernels}
        with timed("load"):
            image = load([module.data], list(made))
        fresh = {id(one): KernelCode(one, image, module) for one in module.kernels}
        with _lock:
            for call, one in self._new.items():
                codes = self._codes(call)  # another thread may have made the same
                code = codes.at(call.sizes)
                if code is None:
                    code = self._shared(fresh[id(one)])
                    codes.codes.append(code)
                self._found[call] = code
        for names, data in compilation.objects:
            for name in names:
                keep_object(self._name(name), data)

    def _codes(self, call: SizedKernel) -> KernelCodes:
        """The codes of a kernel; the last to be dropped."""
        name = call.kernel.digest, self._target.digest, self._strict
        codes = _known[name] = _known.pop(name) if name in _known else KernelCodes()
        return codes


def polling(code: Mapping[SizedKernel, KernelCode]) -> set[SizedKernel]:
    """Those kernels that look for signals."""
    return {call for call, one in code.items() if one.compiled.polls}


@once
def judged_kernels(target: LLVMTarget, strict: bool) -> set[str]:
    """The names of kernels that were judged on drawn values in this process, with this code."""
    return set()


@once
def routine_image(name: str, target: LLVMTarget) -> Image:
    """The routine that has this name."""
    given = routine_imports(name)
    return load([fixed(name, target)], [name], given, [thread_pool(target).image])


@once
def steps_image(target: LLVMTarget) -> Image:
    """The function that carries out the steps of any plan."""
    return load([fixed(STEPS, target)], EXPORTS[STEPS], None, [thread_pool(target).image])
