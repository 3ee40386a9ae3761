"""Plans that can be called, saved, loaded and sent: no tracing, no source, no compiler needed."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tenfold.api.call.arguments import as_array, check_names, parameter_names
from tenfold.api.call.callee import Callee
from tenfold.api.call.entry_point import EntryPoint
from tenfold.api.call.kinds import Give, off_host, taken_in
from tenfold.api.call.signature import Signature
from tenfold.api.call.updates import check_written, donated_leaves, write_back
from tenfold.api.safetensors import load_safetensors
from tenfold.backends.file import SIGNATURE, PlanFile, Reference, write_file
from tenfold.backends.program import Program
from tenfold.errors import HookError, PlanError, ValueProblem
from tenfold.frames import entries
from tenfold.graph import Graph
from tenfold.graph.op import asking
from tenfold.ops import TABLE
from tenfold.plan import Plan
from tenfold.plan.file.sections import LARGEST
from tenfold.reference import Callbacks
from tenfold.trace.containers import flatten
from tenfold.whole import write_whole

Array = np.ndarray[Any, Any]
Hooks = Mapping[str, Callable[..., Any] | None]
StrPath = str | os.PathLike[str]


@entries
class Loaded(Callee):
    """A plan to be called with its function's own arguments. Made by `f.plan` and `tn.load`.

    `notes` say which code runs and why; `certificate` is what the plan was checked by.
    """

    def __init__(
        self,
        signature: Signature,
        make: Callable[[], Program | Reference],
        graph: Callable[[], Graph],
        *,
        callbacks: Callbacks,
        captures: Mapping[str, Array],
        certificate: Callable[[], Mapping[str, Any]] = dict,
        notes: tuple[str, ...] = (),
        donated: Collection[int] = (),
    ) -> None:
        """`donated` are the leaves that the caller gives up: no other is written into."""
        self.signature = signature
        self.notes = notes
        self._certificate = certificate
        self._make = make
        self._graph = graph
        self._captures = dict(captures)
        self._callbacks = callbacks
        self._donated = frozenset(donated)
        self._made: Program | Reference | None = None

    @property
    def program(self) -> Program | Reference:
        """What runs; compiled when it is first asked for."""
        if self._made is None:
            made = self._make()
            if isinstance(made, Program):
                _check_memory(self.signature, made)
            self._made = made
        return self._made

    @property
    def certificate(self) -> dict[str, Any]:
        """What the plan was checked by, as plain data; empty where it was not."""
        return dict(self._certificate())

    @property
    def graph(self) -> Graph:
        """The graph that the plan was made of."""
        return self._graph()

    @property
    def plan(self) -> Plan:
        """The steps and slots that run."""
        program = self.program
        if isinstance(program, Reference):
            raise PlanError(
                f"{self.signature.name}: no plan runs: there is no compiler here",
                fix="install the one that tn.backends() names, or load with trust_code=True a file "
                "that holds code for this machine",
            )
        return program.plan

    def __getattr__(self, name: str) -> Any:
        """What the plan has: steps, slots, kernels, host_steps, peak_bytes and so on."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.plan, name)

    def _parameters(self) -> tuple[inspect.Signature, Collection[str]]:
        return self.signature.form.signature, ()

    def _plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # There is no function to run: the reference does, with NumPy, node by node.
        return self._answer(Reference(self.graph), args, kwargs)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        program, give = self.program, None
        if isinstance(program, Program) and program.backend.put is not None:
            structure, leaves = flatten((args, kwargs))
            there = [n for n, leaf in enumerate(leaves) if off_host(leaf)]
            if there:
                taken = [leaves[n] for n in there]
                check, own = program.backend.check_place, self.signature.leaf_names
                named = not kwargs and len(own) == len(leaves)
                give = taken_in(taken, check, (lambda: [own[n] for n in there]) if named else None)
                for n, array in zip(there, taken, strict=True):
                    leaves[n] = array
                args, kwargs = structure.unflatten(leaves)
        return self._answer(program, args, kwargs, give)

    def _answer(
        self,
        program: Program | Reference,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        give: Give | None = None,
    ) -> Any:
        signature = self.signature
        given, leaves = signature.bind(args, kwargs)
        names, updates = signature.leaf_names, signature.updates
        check_written(signature.name, names, given, updates, self._donated)
        captures = [self._captures[name] for name in signature.captures]
        copied: list[int] = []
        if isinstance(program, Program):
            copied = [n for n in program.donated if n not in self._donated]
            if program.refuted is not None:
                from tenfold.api.checking import tell  # what agrees does without

                tell(program, program.strict)
                program = Reference(self.graph)
            elif program.unjudged and program.certificate is None:
                return self._first(program, given, leaves, captures, copied, give)
            elif not signature.hooks and self._entered is None and not {*copied} & {*updates}:
                entry_point = EntryPoint(program, signature.form, captures, copied=copied)
                self._dispatch.add(entry_point)
        arrays = [np.array(a) if n in copied else a for n, a in enumerate(leaves)]
        outputs = program([*arrays, *captures], self._callbacks)
        results = signature.form.results(outputs, given, give)
        write_back(updates, given, outputs)
        return results

    def _first(
        self,
        program: Program,
        given: Sequence[Any],
        leaves: Sequence[Any],
        captures: Sequence[Array],
        copied: Collection[int],
        give: Give | None,
    ) -> Any:
        """The first call of a plan that was made where it can't run: it is checked, as that of a
        function is."""
        from tenfold.api.checking import answer, go_on
        from tenfold.api.verify import verify_option

        signature, verify = self.signature, verify_option(None)
        arrays = [np.array(a) if n in copied else as_array(a) for n, a in enumerate(leaves)]
        every = [*arrays, *captures]
        outputs = answer(program, self.graph, every, self._callbacks, verify, program.strict)
        if verify not in ("off", "always"):
            go_on(program, self.graph, every)
        program.unjudged = False
        results = signature.form.results(outputs, given, give)
        write_back(signature.updates, given, outputs)
        return results

    def bind(self, *args: Any, **kwargs: Any) -> Any:
        """The plan on arrays that lie on its device and stay there, `bound`: `bound.replay(stream)`
        runs it on what they hold by then, with no argument looked at any more, and
        `bound.outputs` are its results, the same arrays after every replay, numbers too
        (docs/cuda.md).

        >>> import numpy as np, tenfold as tn
        >>> tn.jit(lambda x: x + 1).plan(np.ones(3)).bind(np.ones(3))
        Traceback (most recent call last):
        tenfold.errors.Unsupported: bind: the backend 'cpu' has no memory of its own
          call the plan: it looks at its arguments in a fraction of a microsecond
        """
        from tenfold.api.bind import bind  # few plans are bound

        captures = [self._captures[name] for name in self.signature.captures]
        return bind(self.program, self.signature, captures, args, kwargs)

    def explain(self) -> str:
        """What runs, and why so; what it updates; how far it was checked."""
        plan = self.plan.explain(getattr(self.program, "loops", ()))
        said = self.program.remarks() if isinstance(self.program, Program) else ()
        return "\n".join((*self.notes, plan, *said, *self._updated(), *self._checked()))

    def _updated(self) -> Iterator[str]:
        """The arguments that calls write into."""
        names = [self.signature.leaf_names[n] for n in self.signature.updates]
        if names:
            yield f"updates in place: {', '.join(names)}"

    def _checked(self) -> Iterator[str]:
        refuted = getattr(self.program, "refuted", None)
        certificate = self.certificate
        if refuted is not None:
            yield f"refuted, the reference answers in its place: {refuted}"
        elif not certificate and getattr(self.program, "unjudged", False):
            yield "unchecked: it was made where it can't run; the first call checks it"
        elif not certificate:
            yield "not checked against the reference"
        elif certificate["left"]:
            yield f"certificate: partial, left: {'; '.join(certificate['left'])}"
        else:
            yield "certificate: whole"

    def __str__(self) -> str:
        return str(self.plan)

    def __repr__(self) -> str:
        return f"<plan of {self.signature.name}: {'; '.join(self.notes) or 'compiled here'}>"

    def to_bytes(
        self, *, key: bytes | None = None, targets: tuple[str, ...] = (), code: bool = True
    ) -> bytes:
        """The bytes of the plan's file; see `save`."""
        program = self.program
        if isinstance(program, Reference):
            self.plan  # noqa: B018  says why there is none
        assert isinstance(program, Program)
        if program.refuted is not None:
            from tenfold.api.checking import refused

            raise refused(program)
        return write_file(
            self.graph,
            program,
            self.signature.to_data(),
            self.certificate,
            targets=[program.backend.named(target) for target in targets],
            code=code,
            key=_key(key),
        )

    def save(
        self,
        path: StrPath,
        *,
        key: bytes | StrPath | None = None,
        targets: tuple[str, ...] = (),
        code: bool = True,
    ) -> None:
        """Write the plan to a file: all that is needed to run it where there is no compiler.

        `targets` are further processors that code is made for ('x86-64-v3'), or further chips of a
        GPU's plan ('sm_80'); `key`, bytes or a file that holds them, signs the file for those who
        have the key. Arrays the function closes over are not in the file; only their names are.

        >>> import numpy as np, tempfile, tenfold as tn
        >>> plan = tn.jit(lambda x: np.sqrt(x) + 1).plan(np.ones(3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     plan.save(f"{folder}/f.plan")
        ...     tn.load(f"{folder}/f.plan")(np.array([4.0, 9.0, 16.0]))
        array([3., 4., 5.])
        """
        data = self.to_bytes(key=_key(key), targets=targets, code=code)
        write_whole(path, data)

    def __reduce__(self) -> Any:
        """The bytes of the file; beside them what was bound to it."""
        return _revive, (self.to_bytes(), self._captures, self._hooks(), tuple(self._donated))

    def _hooks(self) -> dict[str, Callable[..., Any] | None]:
        """Every hook that has a callable, by name: as bound, or as met while tracing."""
        found: dict[str, Callable[..., Any] | None] = {}
        if self.signature.hooks:
            defaults = self._callbacks.defaults
            for node, effect in asking(self.graph, TABLE):
                if effect.named and 0 <= node["default"] < len(defaults):
                    found[node["name"]] = defaults[node["default"]]
            found.update(self._callbacks.overrides)
        return found


def _revive(
    data: bytes, captures: Mapping[str, Array], hooks: Hooks, donated: tuple[int, ...] = ()
) -> Loaded:
    """An unpickled plan: whoever unpickles trusts already."""
    return _loaded(PlanFile.read(data), captures, hooks, True, None, lambda signature: donated)


def _check_memory(signature: Signature, program: Program) -> None:
    """Raise where a file's code writes into captured arrays, or gives other outputs than stated."""
    if any(n >= len(signature.leaves) for n in program.donated):
        raise PlanError("plan file: its plan writes into captured arrays")
    made = [program.parameters[n] for n in signature.updates]
    first = sum(leaf is None for leaf in signature.returned)
    if len(program.outputs) < first or list(program.outputs[first:]) != made:
        raise PlanError("plan file: its outputs are not those of its signature")


def load(
    path: StrPath,
    *,
    captures: Mapping[str, Any] | StrPath | None = None,
    hooks: Hooks | None = None,
    trust_code: bool = False,
    key: bytes | StrPath | None = None,
    donate: Any = (),
) -> Loaded:
    """A saved plan, to be called as its function was.

    Arguments that the function updates in place are updated, when a call ends (`signature.updates`
    says which). `donate` names arguments (or gives their positions) that the caller gives up: of
    others that the plan computes in, whatever the file says, a copy is made in each call.

    `captures` gives the arrays the function closes over by name: a mapping, or a safetensors file
    (if none is given, the one beside the plan). `hooks` gives callables by name.

    Native code in the file runs only with `trust_code=True` or where the file is signed by `key`;
    else the plan is made again from its graph, and `notes` says so.
    """
    where = os.fspath(path)
    if os.path.getsize(path) > LARGEST:
        raise PlanError(f"{where}: it is larger than a plan", fix="give the name of a plan's file")
    # Read, not mapped: whoever cuts the file short later must not pull the pages away.
    read = PlanFile.read(Path(path).read_bytes())
    if key is not None:
        secret = _key(key)
        assert secret is not None
        if not read.sections.signed(secret):
            raise PlanError(
                f"{where}: it is not signed by this key", fix="load it without key=, or get it anew"
            )
        trust_code = True
    if captures is None:
        beside = Path(where).with_suffix(".safetensors")
        captures = load_safetensors(beside) if beside.exists() else {}
        extra = True
    elif not isinstance(captures, Mapping):
        captures, extra = load_safetensors(captures), True
    else:
        extra = False

    def donated(signature: Signature) -> tuple[int, ...]:
        names = [name for name, _, _ in signature.parameters]
        chosen = parameter_names(donate, names, "load: donate", signature.name)
        return donated_leaves(signature.leaf_names, chosen)

    strictly = None if extra else "the capture"
    return _loaded(read, captures, hooks or {}, trust_code, strictly, donated)


def _loaded(
    read: PlanFile,
    captures: Mapping[str, Any],
    hooks: Hooks,
    trusted: bool,
    strictly: str | None,
    donate: Callable[[Signature], tuple[int, ...]],
) -> Loaded:
    make: Callable[[], Program | Reference]
    graph: Callable[[], Graph]
    notes: list[str] = []
    found: Program | None = None
    if trusted:
        signature = Signature.from_data(read.sections.data(SIGNATURE))
        found, notes = read.restore()
    else:
        notes.append("code in the file is not trusted")
    if found is not None:
        restored = found
        make, graph = (lambda: restored), cache(lambda: read.plan()[0])
    else:
        checked, make, more = read.rebuild()
        notes += more
        signature = Signature.from_data(read.sections.data(SIGNATURE), checked)
        graph = lambda: checked  # noqa: E731
    if strictly:
        check_names(captures, signature.captures, strictly)
    check_names(hooks, [name for name, _ in signature.hooks], "the hook")
    for name, needed in signature.hooks:
        if needed and name not in hooks:
            raise HookError(
                f"{signature.name}: the hook {name!r} has no callable",
                fix=f"give it to tn.load: hooks={{{name!r}: f}}, or None to silence a hook",
            )
    donated = donate(signature)
    held = _held(signature, captures, graph, found)
    stated = read.certificate() if trusted else {}
    if found is not None and stated:
        found.unjudged = False

    def certificate() -> Mapping[str, Any]:
        made = getattr(found, "certificate", None)
        return stated if made is None else made.to_data()

    return Loaded(
        signature,
        make,
        graph,
        callbacks=Callbacks((), dict(hooks)),
        captures=held,
        certificate=certificate,
        notes=tuple(notes),
        donated=donated,
    )


def _held(
    signature: Signature,
    captures: Mapping[str, Any],
    graph: Callable[[], Graph],
    program: Program | None,
) -> dict[str, Array]:
    """A copy of each captured array, of the type that the plan was made for."""
    held: dict[str, Array] = {}
    if not signature.captures:
        return held
    types = program.parameters if program else [p.type for p in graph().parameters]
    for name, type in zip(signature.captures, types[len(signature.leaves) :], strict=True):
        if name not in captures:
            raise ValueProblem(
                f"{signature.name}: the captured array {name!r} ({type!r}) is not given",
                fix=f"give it to tn.load: captures={{{name!r}: array}}, or in a safetensors file",
            )
        array = np.array(as_array(captures[name]), order="C")
        if (array.dtype, array.shape) != (type.dtype, type.shape):
            raise ValueProblem(
                f"{signature.name}: the captured array {name!r} is {array.dtype}{array.shape}, "
                f"this plan was made for {type!r}",
                fix="give an array of that type, or make a plan for this one",
            )
        array.flags.writeable = False
        held[name] = array
    return held


def _key(key: bytes | StrPath | None) -> bytes | None:
    """The bytes of a key; None is no key."""
    if key is None:
        return None
    found = key if isinstance(key, bytes) else Path(key).read_bytes()
    if not found.strip(b"\0"):  # HMAC fills keys up with zeros: these are all the empty one
        where = "the key" if isinstance(key, bytes) else f"the key file {os.fspath(key)}"
        raise ValueProblem(
            f"{where} is empty: anyone could sign with it", fix="give some 32 random bytes"
        )
    return found
