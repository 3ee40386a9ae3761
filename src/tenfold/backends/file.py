"""Plan files: what is in them, and how a program is made of one again.

Sections: `about` (versions, and what it was planned for), `signature` (how it is called),
`certificate`, `plan`, and for each target `code`, with a `plan` of its own where that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import msgpack

from tenfold.backends.cpu.capabilities import capabilities
from tenfold.backends.cpu.link.compile import compile_kernels
from tenfold.backends.cpu.run.fixed import GATE, STEPS, fixed
from tenfold.backends.cpu.run.freeze import make_native, unlike
from tenfold.backends.cpu.run.kernels import Code
from tenfold.backends.cpu.run.native import Native, read_native
from tenfold.backends.cpu.run.plan import plan_for
from tenfold.backends.cpu.run.program import Program
from tenfold.backends.cpu.run.restored import Restored, unusable
from tenfold.backends.cpu.target import Target, host_target
from tenfold.errors import ParityError, PlanError
from tenfold.graph import Graph
from tenfold.plan import Plan
from tenfold.plan.file.file import read_plan, write_plan
from tenfold.plan.file.sections import Sections, bad, pack
from tenfold.reference import Callbacks, evaluate
from tenfold.version import versions

ABOUT, SIGNATURE, CERTIFICATE, PLAN, CODE = "about", "signature", "certificate", "plan", "code"


def native_of(program: Program, *, whole: bool) -> Native:
    """The native form of a program."""
    if isinstance(program, Restored):
        native = program.native
        if whole and not native.fixed:
            parts = tuple((part, fixed(part, native.target)) for part in (GATE, STEPS))
            native = replace(native, fixed=parts)
        return native
    native = make_native(program.plan, program.code, program.target, program.strict, whole=whole)
    wrong = unlike(native, program)
    if wrong is not None:  # what is kept has to be what was judged
        raise ParityError(f"the plan can't be written down: {wrong}", fix="report this fault")
    return native


def write_file(
    graph: Graph,
    program: Program,
    signature: Mapping[str, Any],
    certificate: Mapping[str, Any] | None = None,
    *,
    targets: Sequence[Target] = (),
    code: bool = True,
    whole: bool = True,
    key: bytes | None = None,
    compress: bool = True,
) -> bytes:
    """A file of a program and of the graph it was made of; see `make_native` for `whole`."""
    about = {
        "versions": dict(versions()),
        "target": astuple(program.target),
        "strict": program.strict,
    }
    main = write_plan(program.plan, graph)
    sections = {
        ABOUT: msgpack.packb(about),
        SIGNATURE: msgpack.packb(dict(signature)),
        CERTIFICATE: msgpack.packb(dict(certificate or {})),
        PLAN: main,
    }
    if code:
        sections[f"{CODE} {program.target.digest}"] = native_of(program, whole=whole).pack()
    for target in targets:
        if target.digest == program.target.digest:
            continue
        plan = plan_for(graph, target, program.donated)
        made = compile_for(plan, target, program.strict)
        sections[f"{CODE} {target.digest}"] = made.pack()
        other = write_plan(plan, graph)
        if other != main:
            sections[f"{PLAN} {target.digest}"] = other
    return pack(sections, key=key, compress=compress)


def compile_for(plan: Plan, target: Target, strict: bool) -> Native:
    """The native form of a plan for another target than this machine's."""
    module = compile_kernels(plan.kernels, target, strict)
    code = {
        kernel: Code(made, None, module)  # type: ignore[arg-type]  # never brought into memory
        for kernel, made in zip(plan.kernels, module.kernels, strict=True)
    }
    return make_native(plan, code, target, strict, whole=True)


class Reference:
    """A graph run by the evaluator: what answers where there is neither code nor a compiler."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __call__(self, arrays: Sequence[Any], callbacks: Callbacks | None = None) -> list[Any]:
        return list(evaluate(self.graph, list(arrays), callbacks or Callbacks()))


@dataclass
class PlanFile:
    """A plan file that was read: its sections, each unpacked when it is asked for."""

    sections: Sections

    @staticmethod
    def read(data: bytes | memoryview) -> PlanFile:
        return PlanFile(Sections(data))

    def about(self) -> Mapping[str, Any]:
        about = self.sections.data(ABOUT)
        try:
            Target(*about["target"])
            dict(about["versions"])
            about["strict"] = bool(about["strict"])
        except Exception as error:  # whatever malformed data makes of it
            raise PlanError(f"plan file: it does not say what it is for: {error!r}") from error
        found: Mapping[str, Any] = about
        return found

    def certificate(self) -> dict[str, Any]:
        found = self.sections.data(CERTIFICATE)
        if not isinstance(found, dict):
            bad("its certificate is malformed")
        return found

    def plan(self, target: Target | None = None) -> tuple[Graph, Plan]:
        """The graph and the plan, checked in full; that of a target where it has its own."""
        name = f"{PLAN} {target.digest}" if target else PLAN
        return read_plan(
            self.sections.raw(name if name in self.sections else PLAN), capabilities(host_target())
        )

    def natives(self) -> list[Native]:
        """The code for each target. To be trusted before it is used."""
        names = [name for name in self.sections.names if name.startswith(f"{CODE} ")]
        return [read_native(self.sections.raw(name)) for name in names]

    def restore(self, callbacks: Callbacks | None = None) -> tuple[Program | None, list[str]]:
        """A program of code in the file that fits this machine, or None; and why not, or which."""
        host = host_target()
        notes, fitting = [], []
        for native in self.natives():
            why = unusable(native, host)
            if why is None:
                fitting.append(native)
            else:
                notes.append(f"code for {native.target.cpu} is not used: {why}")
        if not fitting:
            return None, notes or ["the file holds no code"]
        best = max(fitting, key=lambda n: (n.target.digest == host.digest, n.target.vector_bytes))
        program = Restored(best, lambda: self.plan(best.target)[1], callbacks)
        return program, [*notes, f"code for {best.target.cpu} from the file"]

    def rebuild(self) -> tuple[Graph, Callable[[], Program | Reference], list[str]]:
        """The graph, checked; how to make a program of it; and what is said of that.

        Plans are a pure function of graph, target and versions. So the plan is made again, and
        where the file's was made of the same it has to be the same.
        """
        about = self.about()
        graph, filed = self.plan()
        host = host_target()
        try:
            plan = plan_for(graph, host, filed.donated)
        except Exception as error:
            raise PlanError(f"plan file: its graph can't be planned: {error!r}") from error
        notes = []
        same = about["target"] == astuple(host) and about["versions"] == dict(versions())
        if write_plan(plan, graph) != write_plan(filed, graph):
            if same:
                bad("its steps and kernels are not those of its graph")
            notes.append("the plan was made again for this machine and these versions")
        if plan.kernels and not host.llvmlite:
            notes.append("there is no compiler here: the evaluator answers")
            return graph, lambda: Reference(graph), notes
        notes.append(f"kernels compiled here for {host.cpu}")
        return graph, lambda: Program(plan, strict=about["strict"]), notes
