"""Plan files: what is in them, and how a program is made of one again.

Sections: `about` (versions, and what it was planned for), `signature` (how it is called),
`certificate`, `plan`, and for each target `code`, with a `plan` of its own where that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgpack

from tenfold.backends.backend import Backend, ProgramCode, Target
from tenfold.backends.program import Program
from tenfold.backends.registry import backend_named
from tenfold.errors import PlanError, Unsupported
from tenfold.graph import Graph
from tenfold.locks import cached_property
from tenfold.plan import Plan
from tenfold.plan.file.file import read_plan, write_plan
from tenfold.plan.file.sections import Sections, bad, pack
from tenfold.reference import Callbacks, evaluate
from tenfold.version import versions

ABOUT, SIGNATURE, CERTIFICATE, PLAN, CODE = "about", "signature", "certificate", "plan", "code"


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
    """A file of a program and of the graph it was made of; see `Backend` for `whole`."""
    backend = program.backend
    about = {
        "backend": backend.kept_as,
        "versions": {**versions(), **program.target.versions},
        "target": str(program.target),
        "digest": program.target.digest,
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
        sections[f"{CODE} {program.target.digest}"] = backend.code_of(program, whole).pack()
    for target in targets:
        if target.digest == program.target.digest:
            continue
        plan = backend.plan(graph, program.donated, target)
        made = backend.code_for(plan, target, program.strict)
        sections[f"{CODE} {target.digest}"] = made.pack()
        other = write_plan(plan, graph)
        if other != main:
            sections[f"{PLAN} {target.digest}"] = other
    return pack(sections, key=key, compress=compress)


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

    @cached_property
    def about(self) -> Mapping[str, Any]:
        about = self.sections.data(ABOUT)
        try:
            dict(about["versions"])
            about["strict"] = bool(about["strict"])
            texts = [about[name] for name in ("backend", "target", "digest")]
        except Exception as error:  # whatever malformed data makes of it
            raise PlanError(f"plan file: it does not say what it is for: {error!r}") from error
        if not all(isinstance(text, str) for text in texts):
            bad("it does not say what it is for")
        found: Mapping[str, Any] = about
        return found

    @property
    def backend(self) -> Backend:
        """The backend that it is for."""
        try:
            return backend_named(self.about["backend"])
        except Unsupported as error:
            raise PlanError(f"plan file: {error.message}", fix=error.fix) from error

    def certificate(self) -> dict[str, Any]:
        found = self.sections.data(CERTIFICATE)
        if not isinstance(found, dict):
            bad("its certificate is malformed")
        return found

    def plan(self, target: Target | None = None) -> tuple[Graph, Plan]:
        """The graph and the plan, checked in full; that of a target where it has its own."""
        name = f"{PLAN} {target.digest}" if target else PLAN
        raw = self.sections.raw(name if name in self.sections else PLAN)
        return read_plan(raw, self.backend.capabilities(target or self._own_target()))

    def _own_target(self) -> Target:
        """What the file's own plan was made for, as far as this machine can tell."""
        here = self.backend.target()
        if self.about["digest"] == here.digest:
            return here
        theirs = (code.target for code in self.codes())
        return next((one for one in theirs if one.digest == self.about["digest"]), here)

    def codes(self) -> list[ProgramCode]:
        """The code for each target. To be trusted before it is used."""
        names = [name for name in self.sections.names if name.startswith(f"{CODE} ")]
        return [self.backend.read_code(self.sections.raw(name)) for name in names]

    def restore(self, callbacks: Callbacks | None = None) -> tuple[Program | None, list[str]]:
        """A program of code in the file that fits this machine, or None; and why not, or which."""
        here = self.backend.target().digest
        notes, fitting = [], []
        for code in self.codes():
            why = code.unusable()
            if why is None:
                fitting.append(code)
            else:
                notes.append(f"code for {code.target.name} is not used: {why}")
        if not fitting:
            return None, notes or ["the file holds no code"]
        best = max(fitting, key=lambda code: (code.target.digest == here, code.target.rank))
        program = best.restore(lambda: self.plan(best.target)[1], callbacks)
        return program, [*notes, f"code for {best.target.name} from the file"]

    def rebuild(self) -> tuple[Graph, Callable[[], Program | Reference], list[str]]:
        """The graph, checked; how to make a program of it; and what is said of that.

        Plans are a pure function of graph, target and versions. So the plan is made again, and
        where the file's was made of the same it has to be the same.
        """
        about, backend = self.about, self.backend
        graph, filed = self.plan()
        target = backend.target()
        try:
            plan = backend.plan(graph, filed.donated)
        except Exception as error:
            raise PlanError(f"plan file: its graph can't be planned: {error!r}") from error
        notes = []
        made_by = {**versions(), **target.versions}
        same = about["digest"] == target.digest and about["versions"] == made_by
        if write_plan(plan, graph) != write_plan(filed, graph):
            if same:
                bad("its steps and kernels are not those of its graph")
            notes.append("the plan was made again for this machine and these versions")
        missing = backend.compiler_missing()
        if plan.kernels and missing is not None:
            notes.append(f"{missing}: the evaluator answers")
            return graph, lambda: Reference(graph), notes
        notes.append(f"kernels compiled here for {target.name}")
        return graph, lambda: backend.bind(plan, strict=about["strict"]), notes
