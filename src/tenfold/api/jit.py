"""jit: trace a function once for each signature, compile it, and replay the plan."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import monotonic
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tenfold.api.call.arguments import is_opaque
from tenfold.api.callables import check_function
from tenfold.api.specialisation import Options, snapshot_of
from tenfold.api.specialised import SpecialisedFunction
from tenfold.errors import TenfoldError, TypeMismatch
from tenfold.frames import calling_module, entries, entry, hide
from tenfold.graph import Graph
from tenfold.promote.background import submit
from tenfold.reference.callbacks import Callbacks
from tenfold.trace.function import FunctionTrace
from tenfold.trace.scope import is_plain

if TYPE_CHECKING:  # the compiler is loaded when something is compiled
    from tenfold.api.load import Loaded
    from tenfold.backends.program import Program
    from tenfold.parity.certificate import Certificate


@entries
class Jitted(SpecialisedFunction):
    """A function that runs from its plan. Made by `tn.jit`."""

    _binds: type | None  # how it becomes a method: staticmethod, classmethod, or as functions do

    def __init__(
        self, function: Callable[..., Any], options: Options | None = None, home: str = ""
    ) -> None:
        """`home` is the module that it was made in, where it may have a name of its own."""
        binds: type | None = None
        if isinstance(function, (staticmethod, classmethod)):
            binds, function = type(function), function.__func__
        if isinstance(function, Jitted):
            binds, function = binds or function._binds, function.__wrapped__
        check_function(function)
        # What an object has is not the function's, and may change.
        updated = ("__dict__",) if isinstance(function, FunctionType) else ()
        functools.update_wrapper(self, function, updated=updated)
        super().__init__(function, options or Options())
        self._binds = binds
        self.home = home

    @property
    def options(self) -> Options:
        """How it is traced and compiled."""
        return self._options

    @property
    def strict(self) -> bool:
        """Whether contraction is forbidden, and divergence an error."""
        return self._options.strict

    @property
    def backend(self) -> str | None:
        """The name of the backend that it runs on; None is the default one."""
        return self._options.chosen

    def on(self, backend: str | None) -> Jitted:
        """This function on another backend."""
        return Jitted(
            self.__wrapped__, replace(self._options, backend=backend, maths="exact", target=None)
        )

    def __get__(self, instance: Any, owner: type | None = None) -> Jitted:
        if self._binds is staticmethod:
            return self
        if self._binds is classmethod:
            instance = type(instance) if owner is None else owner
        if instance is None:
            return self
        held = getattr(instance, "__dict__", None)
        if held is None:
            raise TypeMismatch(
                f"jit: a method of {type(instance).__name__}, whose objects have only __slots__",
                fix="add '__dict__' to its __slots__, or keep tn.jit(obj.method) yourself",
            )
        methods = held.get(_KEPT)
        if methods is None or methods.owner is not instance:  # a copy's are the other's
            methods = _Methods(instance)
            if isinstance(instance, type):
                setattr(instance, _KEPT, methods)
            else:
                held[_KEPT] = methods
        bound: Jitted | None = methods.get(self)
        if bound is None:
            method = MethodType(self.__wrapped__, instance)
            bound = methods.setdefault(self, Jitted(method, self._options))
        return bound

    def _run(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], hooks: Mapping[str, Any] | None = None
    ) -> Any:
        first = self._binder.names[:1]
        if args and first in (("self",), ("cls",)) and is_opaque(args[0]):
            # Of a class, called with the object first: C.method(obj, x), or by a property.
            return self.__get__(args[0])._run(args[1:], kwargs, hooks)
        return super()._run(args, kwargs, hooks)

    def __reduce_ex__(self, protocol: Any) -> Any:
        from tenfold.api.pickling import reduced

        try:
            return reduced(self, sys._getframe(1))
        except TenfoldError as error:
            hide(error)
            raise

    def __copy__(self) -> Jitted:
        return self

    def __deepcopy__(self, memo: Any) -> Jitted:
        from copy import deepcopy

        function = deepcopy(self.__wrapped__, memo)  # as Python has it: functions are themselves
        return self if function is self.__wrapped__ else Jitted(function, self._options)

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

    def explain_control(self) -> str:
        """What became of the function's control flow in the traces so far, by line.

        >>> import numpy as np, tenfold as tn
        >>> @tn.jit(control="convert")
        ... def root(x, steps=3):
        ...     y = x
        ...     while abs(y * y - x) > 1e-9:
        ...         y = (y + x / y) / 2
        ...     if steps > 2:
        ...         y = -y
        ...     return y
        >>> print(f"{root(2.0):.6f}")
        -1.414214
        >>> print(root.explain_control())  # doctest: +ELLIPSIS
        root, <doctest ...>
          line 4: while → while_loop, carries y
          line 6: if → Python (what is tested is known while tracing)
        """
        return self._control.show(self.__qualname__)

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
        given = dict(hooks)

        def hooked(*args: Any, **kwargs: Any) -> Any:
            return (self._plain if is_plain() else self._run)(args, kwargs, given)

        return entry(hooked)

    def __repr__(self) -> str:
        return f"<tn.jit of {self.__qualname__}>"


_KEPT = "_tenfold_jitted"


class _Methods(dict[Jitted, Jitted]):
    """The jitted methods of an object, by those of its class. They stay with it."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __reduce__(self) -> Any:
        return type(None), ()


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
    control: str | None = None,
    maths: str = "exact",
    target: str | None = None,
    keep: bool = False,
    fallback: str = "cpu",
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
    control: str | None = None,
    maths: str = "exact",
    target: str | None = None,
    keep: bool = False,
    fallback: str = "cpu",
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
    control: str | None = None,
    maths: str = "exact",
    target: str | None = None,
    keep: bool = False,
    fallback: str = "cpu",
    **others: Any,
) -> Any:
    """Trace a function once for each signature, compile it, and replay the plan.

    `static` names arguments (or gives their positions) that are Python values rather than
    arrays: each value is traced apart.
    `backend` names what compiles and runs it, "cpu" if none is named: see `tn.backends()`. "cuda"
    is the first GPU, "cuda:1" the next. `target="sm_90"` makes plans for that chip wherever it is,
    to be saved (`f.plan(...).save(path)`). `maths="fast"` has a GPU compute functions by its own
    instructions, within the bounds of the ops; "exact", the default, gives the CPU's bits. With
    `keep` results stay in the GPU's memory, as they do where an argument lies there. What a backend
    can't do is done on the CPU, as `f.plan(...).explain()` says; `fallback="error"` refuses it.
    `control="convert"` lets `if`, `while`, `for`, `and`, … test traced values: they become
    `tn.cond` and `tn.while_loop` (see `tn.convert_control`, and `f.explain_control()`).
    `compile="never"` stays on the reference evaluator; `compile="background"` has it answer until
    the plan is ready and certified, so that no call waits for the compiler.
    `buckets={"x": [1, 8, 64]}` pads the rows of x to one of these sizes, where the graph shows
    that this changes nothing; other programs are refused. `strict` forbids contraction and
    reassociation of floating-point operations, and makes a plan that disagrees with the reference
    an error.

    `verify="first"`, the default, checks a new plan against the reference in its first call, on
    drawn values and on the arguments of that call, for about as long as compiling took, 0.03 s at
    least and 0.1 s at most; a number of seconds is another limit. What is left goes on in the
    background, or in later calls; until then the plan answers, and its certificate is partial (in
    strict mode the check has no limit, and the reference answers until nothing is left). "always"
    checks in every call, "off" never. What disagrees is not used: the reference answers, with a
    ParityWarning. The environment variable TENFOLD_VERIFY sets the default.

    Arguments that the function updates in place (`x += 1`, `x[1:] = v`, `out=x`, `x.sort()`) are
    updated for the caller, as without jit. They are written when the call ends, after all that
    can fail or be interrupted: an error leaves them as they were. Returned whole, such an argument
    is the caller's own object; views of it, and arguments that are not updated, come back as
    copies. Numbers and NumPy scalars are bound anew, not updated. What is updated must be a
    writeable array (NumPy's, a lazy one, or another library's in the host's memory) that shares no
    memory with another argument or a captured array.
    `donate` names arguments whose memory the caller gives up: plans may compute in it, which saves
    memory; what was in it is gone, also after an error, unless the function updates it.

    >>> import numpy as np, tenfold as tn
    >>> @tn.jit
    ... def smooth(a, b):
    ...     a[1:-1] = (b[:-2] + b[2:]) / 2
    >>> a = np.zeros(4)
    >>> smooth(a, np.array([1.0, 2.0, 3.0, 4.0]))
    >>> a
    array([0., 2., 3., 0.])
    >>> @tn.jit
    ... def f(x, y=2):
    ...     return {"sum": x + y, "norm": np.sqrt((x * x).sum())}
    >>> f(np.array([3.0, 4.0]))
    {'sum': array([5., 6.]), 'norm': np.float64(5.0)}
    >>> f.traces
    1
    """
    if others:
        from tenfold.api.keywords import refuse

        refuse(others)
    home = calling_module()
    given = (static, donate, compile, strict, verify, buckets, backend, control)
    options = Options(*given, maths, target, keep, fallback)
    if function is None:
        return entry(lambda f: Jitted(f, options, home))
    return Jitted(function, options, home)
