"""A function and its specialisations: a call finds the one for its signature, or has it traced,
compiled, checked, and bound to an entry point for the calls that follow."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from inspect import Signature
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet, ref

import numpy as np

from tenfold.api.call.arguments import Binder, Call, as_array, check_names
from tenfold.api.call.callee import Callee
from tenfold.api.call.kinds import taken_in
from tenfold.api.specialisation import Options, Padding, Specialisation
from tenfold.api.traces import Traces, trace_call
from tenfold.api.verify import verify_option
from tenfold.collector import resting
from tenfold.errors import CompileWarning, Unsupported
from tenfold.frames import warn
from tenfold.graph import Graph
from tenfold.graph.op import asking
from tenfold.locks import Lock, cached_property
from tenfold.ops import TABLE
from tenfold.promote.background import submit
from tenfold.reference.callbacks import Callbacks
from tenfold.reference.evaluate import evaluate as run_graph
from tenfold.trace.array import Array
from tenfold.trace.containers import flatten
from tenfold.trace.convert.explain import Explanation, explained
from tenfold.trace.function import FunctionTrace, scalar

if TYPE_CHECKING:  # the compiler is loaded when something is compiled
    from tenfold.api.call.buckets import Axes, Buckets
    from tenfold.backends.backend import Backend
    from tenfold.backends.program import Program
    from tenfold.cache import RecompileWatch
    from tenfold.cache.record import Caller

Hooks = Mapping[str, Any]


class SpecialisedFunction(Callee):
    """A function that answers calls by plans, one for each signature."""

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        self.__wrapped__ = function
        self.__qualname__ = getattr(function, "__qualname__", type(function).__name__)
        self._options = options
        self._traces = Traces(self._drop)
        self._lock = Lock()
        self._watch: RecompileWatch | None = None
        self._users: WeakKeyDictionary[Program, WeakSet[Specialisation]] = WeakKeyDictionary()
        self._control = Explanation()
        self.traces = 0

    @cached_property
    def _binder(self) -> Binder:
        # Made late: a method is only bound to its object, and loses `self`, after decoration.
        return Binder(self._body, self._options.static, self._options.donate)

    @cached_property
    def _body(self) -> Callable[..., Any]:
        """What is traced: the function, with its control flow converted where that is asked for.
        What it closes over is looked for in the function itself."""
        if self._options.control is None:
            return self.__wrapped__
        from tenfold.trace.convert.convert import convert_control

        converted: Callable[..., Any] = convert_control(self.__wrapped__)
        return converted

    @cached_property
    def _device(self) -> Backend | None:
        """The backend, if its memory is not the host's."""
        if self._options.chosen is None:
            return None
        from tenfold.backends.registry import backend_named

        found = backend_named(self._options.chosen)
        return found if found.put is not None else None

    @cached_property
    def _buckets(self) -> Buckets:
        from tenfold.api.call.buckets import Buckets

        return Buckets(self._options.buckets, self._binder)

    def _parameters(self) -> tuple[Signature, Collection[str]]:
        return self._binder.signature, self._binder.static

    def _plain(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], hooks: Hooks | None = None
    ) -> Any:
        from tenfold.trace.control.plain import replacing

        with replacing(hooks or {}):
            result = self.__wrapped__(*args, **kwargs)
        structure, leaves = flatten(result)
        if _lazy(flatten((args, kwargs))[1]) or not _lazy(leaves):
            return result
        return structure.unflatten([scalar(np.array(a)) if _lazy([a]) else a for a in leaves])

    def _inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._body(*args, **kwargs)  # part of that program

    def _run(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], hooks: Hooks | None = None
    ) -> Any:
        call = self._binder.bind(args, kwargs)
        given = list(call.leaves)
        record = self._device
        give = taken_in(call.leaves, record.check_place if record else None, call.leaf_names)
        if self._options.keep and record is not None:
            give = record.put
        # What is written to: the caller's lazy arrays, and the memory of all others.
        own = [a if isinstance(a, Array) else b for a, b in zip(given, call.leaves, strict=True)]
        if self._options.compile == "now":
            _load_runtime(self._options.chosen)
        if self._options.buckets is None:
            traced, outputs = self._outputs(call, own, hooks)
        else:
            padded, axes = self._padded(call)
            traced, outputs = self._outputs(padded, own, hooks)
            if axes is not None:
                from tenfold.api.call.buckets import unpad

                rows = self._buckets.rows(call)
                outputs = [unpad(o, a, rows) for o, a in zip(outputs, axes, strict=True)]
        results = traced.results(outputs, given, give)
        if traced.updates:  # last: nothing can fail any more
            from tenfold.api.call.updates import write_back

            write_back(traced.updates, own, outputs)
        return results

    def _outputs(
        self, call: Call, given: Sequence[Any], hooks: Hooks | None
    ) -> tuple[FunctionTrace, list[np.ndarray[Any, Any]]]:
        """The outputs for a call; `given` are its leaves as the caller has them."""
        found, arrays = self._ready(call)
        traced, entry_point = found.traced, found.entry_point
        if traced.updates or self._binder.donate:
            from tenfold.api.call.updates import check_written

            check_written(
                self.__qualname__,
                call.leaf_names(),
                given,
                traced.updates,
                self._donated(call),
                [(c.name, c.array) for c in found.captures],
                traced.lines,
            )
        if entry_point is not None and not hooks and not entry_point.program.shut:
            known = entry_point in self._dispatch and not entry_point.over
            if not (known and entry_point.lets_in(found.captured())):
                self._enter(call, found, entry_point.program)
            return traced, entry_point.program(arrays)
        if hooks:
            check_names(hooks, _hook_names(traced.graph), "the hook")
        callbacks = Callbacks(traced.callbacks, hooks or {})
        program = None
        if self._options.compile == "now":
            program = self._program(call, traced)
        elif self._options.compile == "background":
            program = self._promoted(call, found, arrays)
        if program is None:
            return traced, run_graph(traced.graph, arrays, callbacks)
        return traced, self._answer(call, found, program, arrays, callbacks)

    def _answer(
        self,
        call: Call,
        found: Specialisation,
        program: Program,
        arrays: list[np.ndarray[Any, Any]],
        callbacks: Callbacks,
    ) -> list[np.ndarray[Any, Any]]:
        """The outputs by the plan, once it is certified; by the reference if it is refuted."""
        from tenfold.api.checking import answer, go_on, note, settled, tried_later

        graph, strict = found.traced.graph, self._options.strict
        verify = verify_option(self._options.verify)
        given: Sequence[Any] = arrays
        if program.donated and not (program.certificate and program.certificate.complete):
            # What is left is checked on what was given, not on what the plan made of it.
            given = [np.array(a) if n in program.donated else a for n, a in enumerate(arrays)]
        checks = verify != "off" and program.certificate is None
        outputs = answer(program, graph, arrays, callbacks, verify, strict)
        if verify not in ("off", "always"):
            go_on(program, graph, given)
            if self._options.compile == "now":  # else it is what compiles
                found.job = program.checking
        late = checks and tried_later(program, arrays, found.traced.updates)
        if settled(program, strict) and verify != "always" and not late:
            # What the plan donates it may have written to by now.
            self._enter(call, found, program, None if program.donated else outputs)
        note(program)  # with the guards that its entry point was tried on
        return outputs

    def _promoted(
        self, call: Call, found: Specialisation, arrays: list[np.ndarray[Any, Any]]
    ) -> Program | None:
        """The program, if the background has it ready; the first call asks for it."""
        with self._lock:
            job = found.job
            if job is None or job.lost:
                kept = [np.array(a) for a in arrays]  # the caller may change the arrays meanwhile
                found.job = submit(lambda: self._promote(call, found, kept))
                return None
        if not job.done.is_set():
            return None
        job.warn()
        if job.error is not None:
            if not job.told:
                job.told = True
                warn(
                    f"{self.__qualname__}: compiling in the background failed, the evaluator goes "
                    f"on answering: {job.error!r}",
                    CompileWarning,
                )
            return None
        if job.result is None:  # asked for while the process ends
            return None
        program: Program
        program, refuted = job.result
        if refuted and not job.told:  # here, not in its thread: the user's line is known
            from tenfold.api.checking import tell

            job.told = True
            tell(program, self._options.strict)
        return program

    def _promote(
        self, call: Call, found: Specialisation, arrays: list[np.ndarray[Any, Any]] | None
    ) -> tuple[Program, bool]:
        """Compile and check, in the background; whether the check refuted the program. With
        callbacks the next call is the check: they must run once for each call."""
        _load_runtime(self._options.chosen)  # here, so that no call has to
        from tenfold.api.checking import answer, go_on, note

        traced = found.traced
        program = self._program(call, traced)
        self._use(program, found)
        verify = verify_option(self._options.verify)
        unchecked = program.certificate is None and program.refuted is None
        if arrays is not None and unchecked and verify != "off" and not traced.graph.effects:
            strict = self._options.strict
            answer(program, traced.graph, arrays, Callbacks(), verify, strict, quiet=True)
            go_on(program, traced.graph, arrays)
            note(program)
        return program, unchecked and program.refuted is not None

    def _program(self, call: Call, traced: FunctionTrace) -> Program:
        from tenfold.cache import RecompileWatch, plans

        if self._watch is None:
            self._watch = RecompileWatch(self.__qualname__)
        program = plans.get(
            traced.graph,
            backend=self._options.chosen,
            strict=self._options.strict,
            donated=self._donated(call),
            caller=lambda: self._caller(call, traced),
            watch=self._watch,
        )
        if self._options.fallback == "error":
            for what, why, source in program.fallbacks():
                raise Unsupported(
                    f"{what} is done on the CPU in this plan for {program.backend.name!r}: {why}",
                    fix="leave fallback='error' out, or do it outside of the function",
                ).at(str(source) if source else None)
        return program

    def _caller(self, call: Call, traced: FunctionTrace) -> Caller:
        from tenfold.api.explain_cache import caller_of  # asked for on a miss

        return caller_of(call, traced, self.__wrapped__)

    def _donated(self, call: Call) -> tuple[int, ...]:
        """The leaves that the caller gives up."""
        donate = self._binder.donate
        if not donate:
            return ()
        from tenfold.api.call.updates import donated_leaves

        return donated_leaves(call.leaf_names(), donate)

    def _enter(
        self,
        call: Call,
        found: Specialisation,
        program: Program,
        made: Sequence[np.ndarray[Any, Any]] | None = None,
    ) -> None:
        """Let native code answer calls like this one from now on. `made` are the plan's outputs
        for this one, where they are known."""
        from tenfold.api.call.entry_point import EntryPoint
        from tenfold.api.call.form import CallForm
        from tenfold.api.captures.guards import guards
        from tenfold.api.checking import guarded

        traced = found.traced
        if traced.graph.effects:
            return
        with self._lock:
            captures = found.captured()
            # A lazy array may be updated in place, which native code does not look for.
            lazy = any(isinstance(c.array, Array) for c in found.captures)
            watched = None if lazy else guards(found)
            entry_point = found.entry_point
            if entry_point is None or entry_point.over or not entry_point.still(captures, watched):
                arrays, strict = [*map(as_array, call.leaves)], self._options.strict
                if verify_option(self._options.verify) != "off" and not guarded(
                    program, captures, watched or (), arrays, traced.updates, strict, made
                ):
                    return
                own = [c.array for c in found.captures if c.places]
                form = CallForm.of(call, traced, self._binder.signature)
                written = dict.fromkeys((*traced.updates, *self._donated(call)))
                self._drop(found)
                found.entry_point = entry_point = EntryPoint(
                    program,
                    form,
                    captures,
                    watched,
                    stands=_standing(self._lock, found, captures),
                    apart=[(n, array) for n in written for array in own],
                    keep=self._options.keep,
                )
                self._use(program, found)
            self._dispatch.add(entry_point)
            if program.retired:  # by another thread, which may not have known of this
                self._dispatch.drop(entry_point)
                found.entry_point = None

    def _drop(self, found: Specialisation) -> None:
        """Let native code answer by it no more."""
        entry_point, found.entry_point = found.entry_point, None
        if entry_point is not None:
            self._dispatch.drop(entry_point)

    def _use(self, program: Program, found: Specialisation) -> None:
        """Remember who is to let go of a program."""
        self._users.setdefault(program, WeakSet()).add(found)
        program.hold(self)

    def forget(self, program: Program) -> None:
        """Let go of a program that is not to be used any more. Any thread may say so."""
        for one in list(self._users.pop(program, ())):
            if one.entry_point is not None and one.entry_point.program is program:
                self._drop(one)
            job = one.job
            if job is not None and job.done.is_set() and job.result and job.result[0] is program:
                one.job = None

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
            many = self._traces.find(padded, padded.key)
            padding = many.paddings.get(rows) if many is not None else None
            if padding is None or not padding.fits():
                few = self._trace(call)  # first: what it raises is what the function raises
                try:
                    many = self._specialisation(padded)
                except Exception as error:
                    error.add_note(f"(traced for {size} rows, which {rows} are padded to)")
                    raise
                from tenfold.api.call.buckets import prove

                padding = Padding(prove(few, many, rows, size), few.watched)
                many.paddings[rows] = padding
        return padded, padding.axes

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """A call as it runs: lazy arrays and those of other libraries as NumPy's, rows padded."""
        call = self._binder.bind(args, kwargs)
        taken_in(call.leaves)
        return call if self._options.buckets is None else self._padded(call)[0]

    def _ready(self, call: Call) -> tuple[Specialisation, list[np.ndarray[Any, Any]]]:
        """The specialisation for a call, and the arrays that it is run on."""
        found = self._specialisation(call)
        found.traced.check_limits(call.leaves)
        return found, [*map(as_array, call.leaves), *found.captured()]

    def _specialisation(self, call: Call) -> Specialisation:
        with self._lock:
            key = call.key
            found = self._traces.find(call, key)
            if found is None:
                found = self._trace(call)
                self._traces.add(key, found)
            return found

    def _trace(self, call: Call) -> Specialisation:
        with explained(self._control):
            made = trace_call(self.__wrapped__, self.__qualname__, self._binder, call)
        self.traces += 1
        return made


def _standing(
    lock: Lock, found: Specialisation, captures: list[np.ndarray[Any, Any]]
) -> Callable[[], bool]:
    """What says whether a specialisation serves with these captures. It does not keep it."""
    weak = ref(found)

    def stands() -> bool:
        one = weak()
        with lock:
            return one is not None and one.fits() and _are(one.captured(), captures)

    return stands


def _lazy(leaves: Sequence[Any]) -> bool:
    return any(isinstance(leaf, Array) for leaf in leaves)


def _are(some: list[Any], others: list[Any]) -> bool:
    return all(a is b for a, b in zip(some, others, strict=True))


@functools.cache
def _load_runtime(backend: str | None) -> None:
    """Bring in what runs plans; before tracing, so that nothing stands between it and a result."""
    with resting():
        import tenfold.cache.stored  # where code is kept, which is looked at first
        from tenfold.backends.registry import backend_named

        backend_named(backend).prepare()
        import tenfold.api.call.dispatch
        import tenfold.api.call.entry_point
        import tenfold.api.call.form
        import tenfold.api.captures.guards
        import tenfold.api.checking
        import tenfold.cache
        import tenfold.graph.file
        import tenfold.parity.replay.guards  # noqa: F401


def _hook_names(graph: Graph) -> set[str]:
    """The hooks that may be silenced: a host call may not."""
    asked = asking(graph, TABLE)
    return {node["name"] for node, effect in asked if effect.named and not effect.answers}
