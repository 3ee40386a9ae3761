"""What is kept of a program, in plan files and in the cache: the WGSL of its kernels, each with the
facts of its sizes. All of it is plain data.

A shader is right on the very adapter that it was written for: another computes in other ways, and a
plan is made for it again from its graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import msgpack

from tenfold.backends.facts import facts_data, read_facts, within
from tenfold.backends.webgpu.run.beyond import beyond
from tenfold.backends.webgpu.run.kernels import Kernels, KernelText, odd_buffers, prepared
from tenfold.backends.webgpu.run.shifted import shifted
from tenfold.backends.webgpu.shader import BUFFER, Shader, from_data
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.errors import PlanError
from tenfold.frozen import frozen
from tenfold.kernel.ir.number import Facts
from tenfold.plan.file.sections import bad, unpack
from tenfold.types import TensorType, parse_type

if TYPE_CHECKING:
    from tenfold.backends.webgpu.backend import Place
    from tenfold.backends.webgpu.run.program import WebGPUProgram
    from tenfold.plan import Plan
    from tenfold.reference import Callbacks

INTERFACE = 1  # how shaders are given their memory; code of another number is not used


@frozen(eq=False)
class WebGPUCode:
    """One adapter's code for a plan."""

    target: WebGPUTarget
    strict: bool
    parameters: tuple[TensorType, ...]
    kernels: tuple[tuple[Shader, Facts], ...]
    codes: tuple[int, ...]  # the kernel of each distinct call of the plan; -1 where it has none
    place: Place | None = None  # where it may be brought back to
    interface: int = INTERFACE

    def unusable(self) -> str | None:
        """Why it can't run on the adapter of its place, or None."""
        assert self.place is not None
        if self.interface != INTERFACE:
            return "it was made by a Tenfold whose shaders are given their memory in another way"
        here = self.place.target()
        if here != self.target:
            return f"it is for {self.target}; this is {here}"
        return None

    def restore(
        self, read: Callable[[], Plan], callbacks: Callbacks | None = None
    ) -> WebGPUProgram:
        """The program of this code."""
        assert self.place is not None
        return self.place.restored(self, read(), callbacks)

    def pack(self) -> bytes:
        data = {
            "interface": self.interface,
            "target": astuple(self.target),
            "strict": self.strict,
            "parameters": [repr(t) for t in self.parameters],
            "kernels": [[shader.to_data(), facts_data(facts)] for shader, facts in self.kernels],
            "codes": self.codes,
        }
        packed: bytes = msgpack.packb(data)
        return packed

    def fill(self, kernels: Kernels, plan: Plan) -> None:
        """Have the kernels of a plan found there, by this code alone."""
        calls = odd_buffers(plan, self.target)
        if len(calls) != len(self.codes):
            bad("its code is of another plan")
        texts: dict[tuple[int, int], KernelText] = {}
        for (call, odd), number in zip(calls.items(), self.codes, strict=True):
            if number < 0:
                if beyond(call, self.target) is None:
                    bad("its code is of another plan")
                continue
            shader, facts = self.kernels[number]
            made, buffers = shifted(call.kernel, odd), len(call.kernel.buffers)
            if not facts.hold(made.call(call, {}).sizes):
                bad("its code is for other sizes")
            if any(b.kind == BUFFER and b.number >= buffers for b in shader.bindings):
                bad("its code is of another plan")
            texts.setdefault((number, id(made)), KernelText(shader, facts, made, odd))
        kernels.add(texts.values())


def read_code(raw: bytes | memoryview, place: Place) -> WebGPUCode:
    """The code in these bytes. What its shaders do is taken on trust; the rest is checked."""
    data = unpack(raw)
    try:
        kernels = tuple((from_data(shader), read_facts(facts)) for shader, facts in data["kernels"])
        return WebGPUCode(
            _target(data["target"]),
            bool(data["strict"]),
            tuple(parse_type(t) for t in data["parameters"]),
            kernels,
            tuple(n if n == -1 else within(n, kernels) for n in data["codes"]),
            place,
            int(data["interface"]),
        )
    except PlanError:
        raise
    except Exception as error:  # whatever malformed data makes of reading it
        bad(f"malformed code: {error!r}")


def _target(values: Any) -> WebGPUTarget:
    """The target of such values, one of the right type for each field."""
    plain = astuple(WebGPUTarget())
    if [type(v) for v in values] != [type(v) for v in plain]:
        bad("malformed code: it does not say what it is for")
    return WebGPUTarget(*values)


def code_for(plan: Plan, target: WebGPUTarget, strict: bool) -> WebGPUCode:
    """The code of a plan for an adapter; it need not be here."""
    texts: list[KernelText | None] = []
    for call, odd in odd_buffers(plan, target).items():
        there = [text for text in texts if text is not None]
        left = beyond(call, target) is not None
        texts.append(None if left else prepared(call, odd, target, strict, there))
    return _code(plan, target, strict, texts)


def code_of(program: WebGPUProgram) -> WebGPUCode:
    """The code of a program."""
    found = [one.code for one in program.code.values()]
    texts = [None if code is None else code.text for code in found]
    return _code(program.plan, program.target, program.strict, texts)


def _code(
    plan: Plan, target: WebGPUTarget, strict: bool, texts: Sequence[KernelText | None]
) -> WebGPUCode:
    known: dict[int, int] = {}
    kernels: list[tuple[Shader, Facts]] = []
    codes = []
    for text in texts:
        if text is None:
            codes.append(-1)
            continue
        if id(text) not in known:
            known[id(text)] = len(kernels)
            kernels.append((text.shader, text.facts))
        codes.append(known[id(text)])
    parameters: tuple[Any, ...] = tuple(p.type for p in plan.graph.parameters)
    return WebGPUCode(target, strict, parameters, tuple(kernels), tuple(codes))
