"""jit: trace a function once for each signature, compile it, and replay the plan."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import monotonic
from types import MethodType
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tenfold.api.call.arguments import (
    Binder,
    Call,
    as_array,
    check_names,
)
from tenfold.api.call.buckets import Axes, Buckets, prove, unpad
from tenfold.api.call.donation import (
    check_apart,
    check_writeable,
    donated_leaves,
    write_back,
)
from tenfold.api.call.kinds import taken_in
from tenfold.api.entry import Entry, Options, Proof, snapshot_of
from tenfold.api.traces import Traces, trace_call
from tenfold.api.verify import verify_option
from tenfold.errors import CompileWarning, TypeMismatch
from tenfold.graph import Graph
from tenfold.locks import Lock, cached_property
from tenfold.promote.background import submit
from tenfold.reference.callbacks import Callbacks
from tenfold.reference.evaluate import evaluate as run_graph
from tenfold.trace.array import Array
from tenfold.trace.function import Traced
from tenfold.trace.scope import current

if TYPE_CHECKING:  # the compiler is loaded when something is compiled
    from tenfold.api.call.doors import Doors
    from tenfold.api.load import Loaded
    from tenfold.backends.program import Program
    from tenfold.cache import Watch
    from tenfold.parity.certificate import Certificate


class Jitted:
    """A function that runs from its plan. Made by `tn.jit`."""

    def __new__(cls, function: Any, options: Any = None) -> Jitted:
        # A class of its own for each function: its __call__ is replaced by native code.
        return object.__new__(type("Jitted", (Jitted,), {}))

    def __init__(self, function: Callable[..., Any], options: Options | None = None) -> None:
        if isinstance(function, Jitted):
            function = function.__wrapped__
        if not callable(function):
            raise TypeMismatch(
                f"jit: {function!r} is not callable",
                fix="pass a function: tn.jit(f), or use @tn.jit above one",
            )
        functools.update_wrapper(self, function)
        self.__wrapped__: Callable[..., Any] = function
        self.__qualname__ = getattr(function, "__qualname__", type(function).__name__)
        self._options = options or Options()
        self._lazy_doors: Doors | None = None
        self._lazy_binder: Binder | None = None
        self._traces = Traces(self._shut)
        self._lock = Lock()
        self._watch: Watch | None = None
        self.traces = 0

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

    @property
    def _binder(self) -> Binder:
        # Made late: a method is only bound to its object, and loses `self`, after decoration.
        if self._lazy_binder is None:
            self._lazy_binder = Binder(self.__wrapped__, self._options.static, self._options.donate)
        return self._lazy_binder

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """A call answered by Python: whatever no door takes."""
        if current() is not None:  # inside another trace: part of that program
            return self.__wrapped__(*args, **kwargs)
        return self._run(args, kwargs, None)

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

    def _run(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], hooks: Mapping[str, Any] | None
    ) -> Any:
        call = self._binder.bind(args, kwargs)
        give = taken_in(call.leaves)
        if self._options.compile == "now":
            _load_runtime(self._options.backend)
        if self._options.buckets is None:
            traced, outputs = self._outputs(call, call.leaves, hooks)
        else:
            padded, axes = self._padded(call)
            traced, outputs = self._outputs(padded, call.leaves, hooks)
            if axes is not None:
                rows = self._buckets.rows(call)
                outputs = [unpad(o, a, rows) for o, a in zip(outputs, axes, strict=True)]
        write_back(traced.updates, call.leaves, outputs)
        return traced.results(outputs, give)

    def _outputs(
        self, call: Call, given: Sequence[Any], hooks: Mapping[str, Any] | None
    ) -> tuple[Traced, list[np.ndarray[Any, Any]]]:
        """The outputs for a call; `given` are its leaves as the caller has them."""
        entry, arrays = self._ready(call)
        traced, door = entry.traced, entry.door
        if self._binder.donate:
            names, who = call.leaf_names(), self.__qualname__
            captures = [(h.name, h.array) for h in entry.held]
            check_apart(who, names, given, self._donated(call), captures)
            check_writeable(who, names, given, traced.updates)
        if door is not None and not hooks and not door.program.shut:
            if entry not in self._doors or not door.lets_through(entry.captured()):
                self._open(call, entry, door.program)
            return traced, door.program(arrays)
        if hooks:
            check_names(hooks, _hook_names(traced.graph), "the hook")
        callbacks = Callbacks(traced.callbacks, hooks or {})
        program = None
        if self._options.compile == "now":
            program = self._program(call, traced)
        elif self._options.compile == "background":
            program = self._promoted(call, entry, arrays)
        if program is None:
            return traced, run_graph(traced.graph, arrays, callbacks)
        return traced, self._answer(call, entry, program, arrays, callbacks)

    def _promoted(
        self, call: Call, entry: Entry, arrays: list[np.ndarray[Any, Any]]
    ) -> Program | None:
        """The program, if the background has it ready; the first call asks for it."""
        with self._lock:
            job = entry.job
            if job is None or job.lost:
                kept = [np.array(a) for a in arrays]  # the caller may change the arrays meanwhile
                entry.job = submit(lambda: self._promote(call, entry.traced, kept))
                return None
        if not job.done.is_set():
            return None
        if job.error is not None:
            if not job.told:
                job.told = True
                warnings.warn(
                    f"{self.__qualname__}: compiling in the background failed, the evaluator goes "
                    f"on answering: {job.error!r}",
                    CompileWarning,
                    stacklevel=6,
                )
            return None
        if job.result is None:  # asked for while the process ends
            return None
        found, refuted = job.result
        if refuted and not job.told:  # here, not in its thread: the user's line is known
            from tenfold.api.checking import tell

            job.told = True
            tell(found, self._options.strict)
        program: Program = found
        return program

    def _promote(
        self, call: Call, traced: Traced, arrays: list[np.ndarray[Any, Any]] | None
    ) -> tuple[Program, bool]:
        """Compile and check, in the background; whether the check refuted the program. With
        callbacks the next call is the check: they must run once for each call."""
        from tenfold.api.checking import answer, go_on

        program = self._program(call, traced)
        verify = verify_option(self._options.verify)
        unchecked = program.certificate is None and program.refuted is None
        if arrays is not None and unchecked and verify != "off" and not traced.graph.effects:
            strict = self._options.strict
            answer(program, traced.graph, arrays, Callbacks(), verify, strict, quiet=True)
            go_on(program, traced.graph, arrays)
        return program, unchecked and program.refuted is not None

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
            entries = self._traces.every()
        for entry in entries:
            job = entry.job
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
        entry = self._entry(call)
        if self._options.compile == "now":
            self._program(call, entry.traced)
        elif self._options.compile == "background":
            with self._lock:
                if entry.job is None or entry.job.lost:
                    entry.job = submit(lambda: self._promote(call, entry.traced, None))

    def _padded(self, call: Call) -> tuple[Call, Axes | None]:
        """The call with its rows padded, and where outputs have rows; None where it stays as it
        is."""
        buckets = self._buckets
        rows = buckets.rows(call)
        size = buckets.size_for(rows)
        if size == rows:
            return call, None
        padded = replace(call, leaves=buckets.pad(call, size))
        with self._lock:
            entry = self._traces.find(padded.key)
            proof = entry.sizes.get(rows) if entry is not None else None
            if proof is None or not proof.fits():
                few = self._trace(call)  # first: what it raises is what the function raises
                try:
                    entry = self._entry(padded)
                except Exception as error:
                    error.add_note(f"(traced for {size} rows, which {rows} are padded to)")
                    raise
                proof = entry.sizes[rows] = Proof(prove(few, entry, rows, size), few.watched)
        return padded, proof.axes

    @cached_property
    def _buckets(self) -> Buckets:
        return Buckets(self._options.buckets, self._binder)

    def _answer(
        self,
        call: Call,
        entry: Entry,
        program: Program,
        arrays: list[np.ndarray[Any, Any]],
        callbacks: Callbacks,
    ) -> list[np.ndarray[Any, Any]]:
        """The outputs by the plan, once it is certified; by the reference if it is refuted."""
        from tenfold.api.checking import answer, go_on, settled
        from tenfold.cache import keep_verdict

        graph, strict = entry.traced.graph, self._options.strict
        verify = verify_option(self._options.verify)
        given: Sequence[Any] = arrays
        if program.donated and not (program.certificate and program.certificate.complete):
            # What is left is checked on what was given, not on what the plan made of it.
            given = [np.array(a) if n in program.donated else a for n, a in enumerate(arrays)]
        outputs = answer(program, graph, arrays, callbacks, verify, strict)
        if verify not in ("off", "always"):
            go_on(program, graph, given)
            if self._options.compile == "now":  # else it is what compiles
                entry.job = program.checking
        checked = program.certificate
        if settled(program, strict) and verify != "always":
            self._open(call, entry, program)
        if program.certificate is not checked:  # with the guards that its door was tried on
            keep_verdict(program)
        return outputs

    def _donated(self, call: Call) -> tuple[int, ...]:
        """The leaves that the caller gives up."""
        donate = self._binder.donate
        return donated_leaves(call.leaf_names(), donate) if donate else ()

    def _program(self, call: Call, traced: Traced) -> Program:
        from tenfold.api.explain_cache import caller_of
        from tenfold.cache import Watch, plans

        if self._watch is None:
            self._watch = Watch(self.__qualname__)
        return plans.get(
            traced.graph,
            backend=self._options.backend,
            strict=self._options.strict,
            donated=self._donated(call),
            caller=lambda: caller_of(call, traced, self.__wrapped__),
            watch=self._watch,
        )

    @property
    def _doors(self) -> Doors:
        if self._lazy_doors is None:
            from tenfold.api.call.doors import Doors

            self._lazy_doors = Doors(self, self._call, self._binder.signature, self._lock)
        return self._lazy_doors

    def _open(self, call: Call, entry: Entry, program: Program) -> None:
        """Let native code answer calls like this one from now on."""
        from tenfold.api.call.door import Door
        from tenfold.api.captures.guards import guards
        from tenfold.api.checking import guarded

        traced, signature = entry.traced, self._binder.signature
        if traced.graph.effects:
            return
        with self._lock:
            captures = entry.captured()
            # A lazy array may be updated in place, which native code does not look for.
            lazy = any(isinstance(h.array, Array) for h in entry.held)
            watched = None if lazy else guards(entry)
            if entry.door is None or not entry.door.still(captures, watched):
                if verify_option(self._options.verify) != "off" and not guarded(
                    program, captures, watched or (), self._options.strict
                ):
                    return
                held = [h.array for h in entry.held if h.places]
                apart = [(n, array) for n in self._donated(call) for array in held]
                entry.door = Door(program, captures, watched, call, traced, signature, apart)
                program.hold(self)
            elif entry in self._doors:
                return
            self._answers(self._doors.add(entry, entry.door))

    def _answers(self, front: Callable[..., Any] | None) -> None:
        """Have calls answered by this, or by Python."""
        type(self).__call__ = Jitted.__call__ if front is None else staticmethod(front)  # type: ignore[method-assign]

    def forget(self, program: Program) -> None:
        """Let go of a program that is not to be used any more. Any thread may say so, whatever it
        holds: nothing is waited for here."""
        for entry in self._traces.every():
            if entry.door is not None and entry.door.program is program:
                self._shut(entry)
            job = entry.job
            if job is not None and job.done.is_set() and job.result and job.result[0] is program:
                entry.job = None

    def _entry(self, call: Call) -> Entry:
        with self._lock:
            entry = self._traces.find(call.key)
            if entry is None:
                entry = self._trace(call)
                self._traces.add(call.key, entry)
            return entry

    def _shut(self, entry: Entry) -> None:
        door, entry.door = entry.door, None
        if door is not None and self._doors.drop(entry, door):
            self._answers(None)

    def _trace(self, call: Call) -> Entry:
        made = trace_call(self.__wrapped__, self.__qualname__, self._binder, call)
        self.traces += 1
        return made

    def ready_to_run(self, *args: Any, **kwargs: Any) -> tuple[Traced, list[np.ndarray[Any, Any]]]:
        """The trace for these arguments, and the arrays that its graph is run on."""
        entry, arrays = self._ready(self._bind(args, kwargs))
        return entry.traced, arrays

    def program_for(
        self, *args: Any, **kwargs: Any
    ) -> tuple[Traced, list[np.ndarray[Any, Any]], Program]:
        """The trace for these arguments, arrays to run it on that the program may write into, and
        the very program that answers such calls."""
        call = self._bind(args, kwargs)
        entry, arrays = self._ready(call)
        program = self._program(call, entry.traced)
        for n in program.donated:
            arrays[n] = np.array(arrays[n])
        return entry.traced, arrays, program

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """A call as it runs: lazy arrays and those of other libraries as NumPy's, rows padded."""
        call = self._binder.bind(args, kwargs)
        taken_in(call.leaves)
        return call if self._options.buckets is None else self._padded(call)[0]

    def _ready(self, call: Call) -> tuple[Entry, list[np.ndarray[Any, Any]]]:
        entry = self._entry(call)
        entry.traced.check_limits(call.leaves)
        arrays = [as_array(leaf) for leaf in call.leaves]
        return entry, [*arrays, *(h.snapshot for h in entry.held)]

    def plan(self, *args: Any, **kwargs: Any) -> Loaded:
        """The plan that runs for these arguments (arrays or `tn.spec`): to look at, call, save.

        >>> import numpy as np, tenfold as tn
        >>> f = tn.jit(lambda x: np.exp(-x * x).sum())
        >>> len(f.plan(np.ones(100)).kernels)
        1
        """
        call = self._bind(args, kwargs)
        entry = self._entry(call)
        traced = entry.traced
        program = self._program(call, traced)
        from tenfold.api.call.signature import Signature
        from tenfold.api.load import Loaded

        return Loaded(
            Signature.of(call, traced, self._binder),
            lambda: program,
            lambda: traced.graph,
            callbacks=Callbacks(traced.callbacks),
            captures={h.name: h.snapshot for h in entry.held},
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
        found: Certificate | None = self._program(call, self._entry(call).traced).certificate
        return found

    def trace(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph that runs for these arguments (arrays or `tn.spec`)."""
        return self._entry(self._bind(args, kwargs)).traced.graph

    def captures(self, *args: Any, **kwargs: Any) -> dict[str, np.ndarray[Any, Any]]:
        """The arrays this function closes over, by name, as they were taken."""
        entry = self._entry(self._bind(args, kwargs))
        return {h.name: h.snapshot for h in entry.held}

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
            entries = self._traces.every()
        return explain(self.__qualname__, entries, survey(self.__wrapped__))

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
            for entry in self._traces.every():
                for held in entry.held:
                    held.snapshot = snapshot_of(held.array)
            if self._lazy_doors is not None:
                self._lazy_doors.close()
            self._answers(None)

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
        return lambda *args, **kwargs: self._run(args, kwargs, dict(hooks))

    def __repr__(self) -> str:
        return f"<tn.jit of {self.__qualname__}>"


@functools.cache
def _load_runtime(backend: str | None) -> None:
    """Bring in what runs plans; before tracing, so that nothing stands between it and a result."""
    import tenfold.cache.stored  # where code is kept, which is looked at first
    from tenfold.backends.registry import backend_named

    backend_named(backend).prepare()
    import tenfold.api.call.doors
    import tenfold.api.call.unpack
    import tenfold.api.captures.guards
    import tenfold.api.checking
    import tenfold.api.explain_cache
    import tenfold.cache
    import tenfold.graph.file
    import tenfold.parity.replay.guards  # noqa: F401


_KEPT = "_tenfold_jitted"


def _hook_names(graph: Graph) -> set[str]:
    return {node["name"] for g in (graph, *graph.scopes()) for node in g.nodes if node.op == "hook"}


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
    `compile="never"` stays on the reference evaluator;
    `compile="background"` has it answer until the plan is ready and certified, so that no call
    waits for the compiler. `buckets={"x": [1, 8, 64]}` pads the rows of x to one of these sizes,
    where the graph shows that this changes nothing; other programs are refused. `backend` names
    what runs it, one of `tn.backends()`. `strict` forbids
    contraction and reassociation of floating-point operations, and makes a plan that
    disagrees with the reference an error.

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
        return lambda f: Jitted(f, options)
    return Jitted(function, options)
