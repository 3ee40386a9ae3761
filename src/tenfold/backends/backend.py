"""A backend is one record: what the planner, the cache, parity, plan files and `jit` ask of it.

Whoever plans, keeps, checks or calls programs speaks to the record and to what it gives: a target,
capabilities, programs, code. `registry` finds records by name; what a backend is made of stands in
a package of its own, which nothing outside imports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tenfold.frozen import frozen
from tenfold.seam import passed
from tenfold.types import TensorType

if TYPE_CHECKING:
    from tenfold.backends.program import Program
    from tenfold.graph import Graph
    from tenfold.kernel.ir.sized import SizedKernel
    from tenfold.plan import Plan
    from tenfold.plan.capabilities import Capabilities
    from tenfold.reference import Callbacks


class Target(Protocol):
    """What fixes bits and code: an instruction set or an adapter, its limits, its libraries. Its
    text describes it in certificates and explanations."""

    @property
    def name(self) -> str:
        """What users call it: 'x86-64-v3'."""
        ...

    @property
    def digest(self) -> str:
        """Of all that it is: the part of a cache key that stands for it."""
        ...

    @property
    def versions(self) -> Mapping[str, str]:
        """Those of the libraries that make its code."""
        ...

    @property
    def rank(self) -> int:
        """Of two whose code runs here the one of the higher rank is the better."""
        ...


class ProgramCode(Protocol):
    """What is kept of a program for one target, in the cache and in plan files. Plain data."""

    @property
    def target(self) -> Target: ...

    @property
    def parameters(self) -> tuple[TensorType, ...]: ...

    def pack(self) -> bytes:
        """Its bytes."""
        ...

    def unusable(self) -> str | None:
        """Why it can't run here, or None."""
        ...

    def restore(self, read: Callable[[], Plan], callbacks: Callbacks | None = None) -> Program:
        """The program, without a compiler; `read` gives its plan to whoever looks at it."""
        ...


class KernelRequest(Protocol):
    """The code of kernels, asked for while a plan is made."""

    def add(self, call: SizedKernel) -> None:
        """Have one more compiled, unless its code is there."""
        ...

    def add_routine(
        self, name: str, types: tuple[TensorType, ...], attributes: Mapping[str, Any]
    ) -> None:
        """Have the code of a routine made, unless it is there."""
        ...

    def drop(self) -> None:
        """Let go of all: the plan was not made."""
        ...


class Bind(Protocol):
    """Brings a plan into this process: its kernels compiled, its memory laid out. What of them was
    asked for earlier is in the request."""

    def __call__(
        self,
        plan: Plan,
        callbacks: Callbacks | None = None,
        *,
        strict: bool = False,
        request: Any = None,
    ) -> Program: ...


def _nothing(*_: Any) -> None:
    return None


@frozen(kw_only=True, eq=False)
class Backend:
    """One backend. All that it says holds for this machine and this process.

    `target` is what code is made for, as the environment asks; `named` a further target, by its
    name. `capabilities` are what a planner asks about: instructions and routines, the form of
    kernels, the memory of slots. `bind` compiles a plan's kernels and gives a program, which knows
    how it is called and how its steps are replayed for a check.

    `variant` is the record of another of its devices, or of another way to compute functions, for
    backends that have several.

    `code_of` is what is kept of a program, `whole` if it is to need no compiler where there is no
    cache either; `code_for` that of a plan on another target; `read_code` reads either.
    """

    name: str
    target: Callable[[], Target]
    named: Callable[[str], Target]
    capabilities: Callable[[Any], Capabilities]  # of a target
    bind: Bind
    code_of: Callable[[Any, bool], ProgramCode]  # program, whole
    code_for: Callable[[Plan, Any, bool], ProgramCode]  # plan, target, strict
    read_code: Callable[[bytes | memoryview], ProgramCode]
    describe: Callable[[], Mapping[str, str]]  # what tn.backends() says
    missing: Callable[[], str | None] = _nothing  # why it can't be used on this machine
    uninstalled: Callable[[], str | None] | None = None  # the same, as far as a look at files tells
    remedy: Callable[[], str | None] = _nothing  # what to do about that
    absent: Callable[[], Mapping[str, str]] = dict  # what tn.backends() says then
    kind: str = ""  # its name in files and keys, where that is another: without the device
    variant: Callable[[str, str], Backend] | None = None  # device, maths
    maths: tuple[str, ...] = ("exact",)  # the ways in which it may compute functions
    put: Callable[[Any], Any] | None = None  # brings an array to its memory, if that is its own
    check_place: Callable[[Any, str], None] = _nothing  # raises where it lies on another device
    compiler_missing: Callable[[], str | None] = _nothing  # why nothing can be compiled here
    unkept: Callable[[], str | None] = _nothing  # why code can't be loaded from the disk here
    prepare: Callable[[], object] = _nothing  # what a process does once, before its first plan
    release: Callable[[], int] = lambda: 0  # gives back memory that is kept: how many bytes
    request: Callable[[bool], KernelRequest | None] = _nothing  # strict: for a plan to be made

    @property
    def kept_as(self) -> str:
        """Its name in files and keys: those of one kind can use each other's code."""
        return self.kind or self.name

    def plan(
        self,
        graph: Graph,
        donated: Sequence[int] = (),
        target: Target | None = None,
        request: KernelRequest | None = None,
    ) -> Plan:
        """The plan of a graph; see `make_plan`. Its kernels are requested on the way."""
        from tenfold.plan import make_plan  # a plan from the cache does without

        capabilities = self.capabilities(target or self.target())
        if request is None:
            return passed("plan", make_plan(graph, capabilities, donated))
        try:
            made = make_plan(
                graph, capabilities, donated, begin=request.add, begin_routine=request.add_routine
            )
            return passed("plan", made)
        except BaseException:
            request.drop()
            raise

    def compile(self, graph: Graph, *, strict: bool = False) -> Program:
        """The program of a graph; its kernels are compiled while it is planned."""
        request = self.request(strict)
        return self.bind(self.plan(graph, request=request), strict=strict, request=request)
