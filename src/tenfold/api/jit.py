"""jit: trace a function once for each signature, compile it, and replay the plan."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import monotonic
from types import MethodType
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tenfold.api.specialisation import Options, snapshot_of
from tenfold.api.specialised import SpecialisedFunction
from tenfold.errors import TypeMismatch
from tenfold.frames import entries, entry
from tenfold.graph import Graph
from tenfold.promote.background import submit
from tenfold.reference.callbacks import Callbacks
from tenfold.trace.function import FunctionTrace

if TYPE_CHECKING:  # the compiler is loaded when something is compiled
    from tenfold.api.load import Loaded
    from tenfold.backends.program import Program
    from tenfold.parity.certificate import Certificate


@entries
class Jitted(SpecialisedFunction):
    """A function that runs from its plan. Made by `tn.jit`."""

    def __init__(self, function: Callable[..., Any], options: Options | None = None) -> None:
        if isinstance(function, Jitted):
            function = function.__wrapped__
        if not callable(function):
            raise TypeMismatch(
                f"jit: {function!r} is not callable",
                fix="pass a function: tn.jit(f), or use @tn.jit above one",
            )
        functools.update_wrapper(self, function)
        super().__init__(function, options or Options())

    @property
    def strict(self) -> bool:
        """Whether contraction is forbidden, and divergence an error."""
        return self._options.strict

    @property
    def backend(self) -> str | None:
        """The name of the backend that it runs on; None is the default one."""
        return self._options.backend

    def on(self, backend: str | None) -> Jitted:
        """This function on another backend."""
        return Jitted(self.__wrapped__, replace(self._options, backend=backend))

    def __get__(self, instance: Any, owner: type | None = None) -> Jitted:
        if instance is None:
            return self
        kept = getattr(instance, "__dict__", None)
        if kept is None:
            raise TypeMismatch(
                f"jit: a method of {type(instance).__name__}, whose objects have only __slots__",
                fix="add '__dict__' to its __slots__, or keep tn.jit(obj.method) yourself",
            )
        methods = kept.setdefault(_KEPT, {})
        if id(self) not in methods:
            methods[id(self)] = Jitted(MethodType(self.__wrapped__, instance), self._options)
        bound: Jitted = methods[id(self)]
        return bound

    def ready(self, timeout: float | None = None) -> bool:
        """Whether all that was to be compiled or checked in the background is; waits for it, at
        most so many seconds.

        >>> import numpy as np, tenfold as tn
        >>> f = tn.jit(lambda x: x * 2 + 1, compile="background")
        >>> f(np.ones(3))
        array([3., 3., 3.])
        >>> f.ready(60)
        True
        """
        end = None if timeout is None else monotonic() + timeout
        with self._lock:
            every = self._traces.every()
        for one in every:
            job = one.job
            while job is not None and not job.lost:
                left = None if end is None else max(0.0, end - monotonic())
                if not job.done.wait(left):
                    return False
                job = job.next
        return True

    def warm(self, *args: Any, **kwargs: Any) -> None:
        """Compile ahead for arguments like these (arrays or `tn.spec`).

        >>> import tenfold as tn
        >>> f = tn.jit(lambda x: x * 2 + 1)
        >>> f.warm(tn.spec((64, 3), "float32"))
        >>> f.traces
        1
        """
        call = self._bind(args, kwargs)
        found = self._specialisation(call)
        if self._options.compile == "now":
            self._program(call, found.traced)
        elif self._options.compile == "background":
            with self._lock:
                if found.job is None or found.job.lost:
                    found.job = submit(lambda: self._promote(call, found, None))

    def ready_to_run(
        self, *args: Any, **kwargs: Any
    ) -> tuple[FunctionTrace, list[np.ndarray[Any, Any]]]:
        """The trace for these arguments, and the arrays that its graph is run on."""
        found, arrays = self._ready(self._bind(args, kwargs))
        return found.traced, arrays

    def program_for(
        self, *args: Any, **kwargs: Any
    ) -> tuple[FunctionTrace, list[np.ndarray[Any, Any]], Program]:
        """The trace for these arguments, arrays to run it on that the program may write into, and
        the very program that answers such calls."""
        call = self._bind(args, kwargs)
        found, arrays = self._ready(call)
        program = self._program(call, found.traced)
        for n in program.donated:
            arrays[n] = np.array(arrays[n])
        return found.traced, arrays, program

    def plan(self, *args: Any, **kwargs: Any) -> Loaded:
        """The plan that runs for these arguments (arrays or `tn.spec`): to look at, call, save.

        >>> import numpy as np, tenfold as tn
        >>> f = tn.jit(lambda x: np.exp(-x * x).sum())
        >>> len(f.plan(np.ones(100)).kernels)
        1
        """
        call = self._bind(args, kwargs)
        found = self._specialisation(call)
        traced = found.traced
        program = self._program(call, traced)
        from tenfold.api.call.signature import Signature
        from tenfold.api.load import Loaded

        return Loaded(
            Signature.of(call, traced, self._binder),
            lambda: program,
            lambda: traced.graph,
            callbacks=Callbacks(traced.callbacks),
            captures={c.name: c.snapshot for c in found.captures},
            certificate=lambda: program.certificate.to_data() if program.certificate else {},
            donated=self._donated(call),
        )

    def certificate(self, *args: Any, **kwargs: Any) -> Certificate | None:
        """The certificate of the plan for these arguments; None before it has been checked.

        >>> import numpy as np, tenfold as tn
        >>> f = tn.jit(lambda x: np.exp(x).sum())
        >>> y = f(np.ones(100))
        >>> f.certificate(np.ones(100)).complete
        True
        """
        call = self._bind(args, kwargs)
        program = self._program(call, self._specialisation(call).traced)
        found: Certificate | None = program.certificate
        return found

    def trace(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph that runs for these arguments (arrays or `tn.spec`)."""
        return self._specialisation(self._bind(args, kwargs)).traced.graph

    def captures(self, *args: Any, **kwargs: Any) -> dict[str, np.ndarray[Any, Any]]:
        """The arrays this function closes over, by name, as they were taken."""
        found = self._specialisation(self._bind(args, kwargs))
        return {c.name: c.snapshot for c in found.captures}

    def explain_captures(self) -> str:
        """What this function closes over, a line each: its name, whether it is an array, a
        setting, a constant or not guarded, and how it is watched.

        >>> import numpy as np, tenfold as tn
        >>> w, gain = np.ones(20), 2.0
        >>> f = tn.jit(lambda x: x * w * gain)
        >>> print(f.explain_captures())
        <lambda> closes over
          gain  setting      2.0; by type and bits
          w     array        f64[20]
        """
        from tenfold.api.captures.captures import survey
        from tenfold.api.captures.explain import explain

        with self._lock:
            every = self._traces.every()
        return explain(self.__qualname__, every, survey(self.__wrapped__))

    def refresh(self) -> None:
        """Look at captured arrays again: needed after one was changed in place.

        >>> import numpy as np, tenfold as tn
        >>> w = np.ones(20)
        >>> f = tn.jit(lambda x: (x * w).sum())
        >>> x = np.ones(20)
        >>> float(f(x)); w[:] = 2; float(f(x)); f.refresh(); float(f(x))
        20.0
        20.0
        40.0
        """
        with self._lock:
            if self._entered is not None:
                self._entered.clear()
            for one in self._traces.every():
                for captured in one.captures:
                    captured.snapshot = snapshot_of(captured.array)
                if one.captures:
                    one.entry_point = None
                elif one.entry_point is not None:
                    self._dispatch.add(one.entry_point)

    def with_hooks(self, hooks: Mapping[str, Callable[..., Any] | None]) -> Callable[..., Any]:
        """This function with hooks replaced or added by name, or silenced by None.

        >>> import tenfold as tn
        >>> f = tn.jit(lambda x: tn.hook("in", x) * 2)
        >>> seen = []
        >>> int(f.with_hooks({"in": seen.append})(3)), [int(v) for v in seen]
        (6, [3])
        """
        for name, hook in hooks.items():
            if hook is not None and not callable(hook):
                raise TypeMismatch(
                    f"the hook {name!r} is a {type(hook).__name__}, which can't be called",
                    fix="give a function, or None to silence the hook",
                )
        return entry(lambda *args, **kwargs: self._run(args, kwargs, dict(hooks)))

    def __repr__(self) -> str:
        return f"<tn.jit of {self.__qualname__}>"


_KEPT = "_tenfold_jitted"


@overload
def jit(
    function: Callable[..., Any],
    *,
    static: Any = (),
    donate: Any = (),
    compile: str = "now",
    strict: bool = False,
    verify: Any = None,
    buckets: Any = None,
    backend: str | None = None,
) -> Jitted: ...


@overload
def jit(
    *,
    static: Any = (),
    donate: Any = (),
    compile: str = "now",
    strict: bool = False,
    verify: Any = None,
    buckets: Any = None,
    backend: str | None = None,
) -> Callable[[Callable[..., Any]], Jitted]: ...


def jit(
    function: Any = None,
    *,
    static: Any = (),
    donate: Any = (),
    compile: str = "now",
    strict: bool = False,
    verify: Any = None,
    buckets: Any = None,
    backend: str | None = None,
) -> Any:
    """Trace a function once for each signature, compile it, and replay the plan.

    `static` names arguments (or gives their positions) that are Python values rather than
    arrays: each value is traced apart. `donate` names arguments that the function may update in
    place: the caller gives their memory up, and finds in it what the function made of them.
    `backend` names what compiles and runs it, "cpu" if none is named: see `tn.backends()`.
    `compile="never"` stays on the reference evaluator; `compile="background"` has it answer until
    the plan is ready and certified, so that no call waits for the compiler.
    `buckets={"x": [1, 8, 64]}` pads the rows of x to one of these sizes, where the graph shows
    that this changes nothing; other programs are refused. `strict` forbids contraction and
    reassociation of floating-point operations, and makes a plan that disagrees with the reference
    an error.

    `verify="first"`, the default, checks a new plan against the reference in its first call, on
    drawn values and on the arguments of that call, for about as long as compiling took, 0.03 s at
    least and 0.3 s at most; a number of seconds is another limit. What is left goes on in the
    background, or in later calls; until then the plan answers, and its certificate is partial (in
    strict mode the check has no limit, and the reference answers until nothing is left). "always"
    checks in every call, "off" never. What disagrees is not used: the reference answers, with a
    ParityWarning. The environment variable TENFOLD_VERIFY sets the default.

    >>> import numpy as np, tenfold as tn
    >>> @tn.jit
    ... def f(x, y=2):
    ...     return {"sum": x + y, "norm": np.sqrt((x * x).sum())}
    >>> f(np.array([3.0, 4.0]))
    {'sum': array([5., 6.]), 'norm': np.float64(5.0)}
    >>> f.traces
    1
    """
    options = Options(static, donate, compile, strict, verify, buckets, backend)
    if function is None:
        return entry(lambda f: Jitted(f, options))
    return Jitted(function, options)
