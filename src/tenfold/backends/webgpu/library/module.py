"""The shader of a routine on its way: arrays, words and entry points."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tenfold.backends.webgpu.library.elements import Array
from tenfold.backends.webgpu.shader import (
    BUFFER,
    SCRATCH,
    WORDS,
    ZERO,
    Binding,
    Dispatch,
    Shader,
    count,
)
from tenfold.backends.webgpu.wgsl.prelude import helpers

_BUILTINS = {
    "lid": "@builtin(local_invocation_index) lid: u32",
    "group": "@builtin(workgroup_id) group: vec3<u32>",
    "grid": "@builtin(num_workgroups) grid: vec3<u32>",
}


class RoutineText:
    """Collects what a routine's shader is made of. Its buffers are `arrays`, in their order;
    `words` name the words of every dispatch; `scratch` are names and types of elements of the
    memory between dispatches."""

    def __init__(
        self,
        arrays: Sequence[Array],
        words: Sequence[str],
        workgroup: int,
        scratch: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.arrays, self.workgroup, self.scratch = arrays, workgroup, scratch
        self.words = words
        self.shared: list[str] = []
        self.functions: list[str] = []
        self.entries: list[tuple[str, list[str]]] = []

    def share(self, name: str, ty: str, size: int) -> None:
        """Memory of a workgroup."""
        self.shared.append(f"var<workgroup> {name}: array<{ty}, {size}>;")

    def function(self, text: str) -> None:
        self.functions.append(text)

    def entry(self, name: str, lines: Sequence[str]) -> None:
        """An entry point. In it `number` is the number of the group."""
        self.entries.append((name, list(lines)))

    def finish(self, schedule: str) -> Shader:
        first = len(self.words)
        own = [a.text(f"N[{first + n}]") for n, a in enumerate(self.arrays)]
        every = [*own, *self.functions, *("\n".join(lines) for _, lines in self.entries)]
        functions = [*helpers(every), *own, *self.functions]
        names = [(a.name, a.held) for a in self.arrays] + list(self.scratch)
        bindings = [Binding(BUFFER, n) for n in range(len(self.arrays))]
        bindings += [Binding(SCRATCH, n) for n in range(len(self.scratch))]
        declared = [
            f"@group(0) @binding({n}) var<storage, read_write> {name}: array<{ty}>;"
            for n, (name, ty) in enumerate(names)
        ]
        declared.append(f"@group(0) @binding({len(bindings)}) var<storage, read> N: array<u32>;")
        bindings.append(Binding(WORDS))
        if re.search(r"\bZ\b", "\n".join([*functions, *every])):
            place = f"@group(0) @binding({len(bindings)})"
            declared.append(f"{place} var<uniform> Z: vec4<u32>;")
            bindings.append(Binding(ZERO))
        parts = [*declared, *self.shared, *functions]
        parts += [self._entry(name, lines) for name, lines in self.entries]
        return Shader(
            "\n".join([*parts, ""]), schedule, self.workgroup, tuple(bindings), (),
            tuple(Dispatch(name, count(0)) for name, _ in self.entries),
        )  # fmt: skip

    def _entry(self, name: str, lines: Sequence[str]) -> str:
        body = ["let number = group.x + group.y * grid.x;", *lines]
        text = "\n".join(body)
        given = ", ".join(d for word, d in _BUILTINS.items() if re.search(rf"\b{word}\b", text))
        words = [
            f"let {word} = N[{n}];"
            for n, word in enumerate(self.words)
            if re.search(rf"\b{word}\b", text)
        ]
        head = f"@compute @workgroup_size({self.workgroup})\nfn {name}({given}) {{"
        return "\n".join([head, *(f"  {line}" for line in [*words, *body]), "}"])
