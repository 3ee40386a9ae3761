"""A module on its way: entry points, and what they are bound to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Any

from tenfold.backends.webgpu.shader import (
    BUFFER,
    FAULT,
    NUMBER,
    PARAM,
    SCRATCH,
    TURN,
    WORDS,
    ZERO,
    Binding,
    Dispatch,
    Shader,
    Word,
    count,
)
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.backends.webgpu.wgsl.functions import definitions
from tenfold.backends.webgpu.wgsl.invocation import Invocation, number
from tenfold.backends.webgpu.wgsl.prelude import helpers
from tenfold.backends.webgpu.wgsl.types import REGISTER, SHORT, WIDTH, element, shared
from tenfold.backends.webgpu.wgsl.writer import Writer
from tenfold.errors import Unsupported
from tenfold.frozen import frozen
from tenfold.kernel.ir.kernel import Kernel
from tenfold.kernel.ir.legal import in_memory

_NUMBER = re.compile(r"\bn(\d+)\b")
_PARAM = re.compile(r"\bp(\d+)_(\d)\b")
_BUFFER = re.compile(r"\bb(\d+)\b")
_BUILTINS = {
    "lid": "@builtin(local_invocation_index) lid: u32",
    "group": "@builtin(workgroup_id) group: vec3<u32>",
    "grid": "@builtin(num_workgroups) grid: vec3<u32>",
}


@frozen
class Entry:
    """An entry point: its body, its groups, and how many times it runs."""

    name: str
    lines: tuple[str, ...]
    groups: Any
    times: Any = 1


class ModuleWriter:
    """Collects the entry points of a kernel."""

    def __init__(self, kernel: Kernel, target: WebGPUTarget, workgroup: int) -> None:
        self.kernel, self.target, self.workgroup = kernel, target, workgroup
        self.entries: list[Entry] = []
        self.shared: list[str] = []  # memory of a workgroup
        self.scratch: list[tuple[str, Any]] = []  # types of elements, and how many there are
        self.maths: dict[tuple[str, str], None] = {}
        self.tables: dict[str, str] = {}
        self.functions: list[str] = []
        self.atomic: frozenset[int] = frozenset()
        self.wide: dict[int, int] = {}  # buffers bound as vectors of so many
        self.names = 0
        self.shared_bytes = 0

    def invocation(self, atomic: frozenset[int] = frozenset()) -> Invocation:
        """What the code of an entry point begins with."""
        self.atomic = atomic
        return Invocation(self.kernel, Writer(self.target), atomic)

    def reserve(self, ty: str, size: int, name: str = "") -> str:
        """Memory of a workgroup for so many values of a register: its name."""
        name = name or f"shared{len(self.shared)}"
        self.shared.append(f"var<workgroup> {name}: array<{shared(ty)}, {size}>;")
        self.shared_bytes += size * (8 if ty.endswith("64") else 4)
        if self.shared_bytes > self.target.workgroup_bytes:
            raise Unsupported(
                f"a kernel whose workgroups share {self.shared_bytes} bytes: {self.target.adapter} "
                f"has {self.target.workgroup_bytes}",
                fix="compute it on the CPU",
            )
        return name

    def partial(self, ty: str, size: Any) -> str:
        """Memory between dispatches for so many values of a register: its name."""
        self.scratch.append((shared(ty), size))
        return f"s{len(self.scratch) - 1}"

    def entry(self, w: Writer, groups: Any, times: Any = 1) -> None:
        """An entry point is complete."""
        name = "main" if not self.entries else f"main{len(self.entries)}"
        self.entries.append(Entry(name, tuple(w.lines), groups, times))
        self.maths.update(w.maths)
        self.tables.update(w.tables)

    def finish(self, schedule: str) -> Shader:
        bodies = "\n".join(line for e in self.entries for line in e.lines)
        functions = [*self.tables.values(), *definitions(self.maths, self.target)]
        functions += self.functions
        functions = [*helpers([bodies, *functions]), *functions]
        words, unpacked = self._words(bodies)
        bindings, declared = self._bindings("\n".join([bodies, *functions]), bool(words))
        stored = sum(b.kind != ZERO for b in bindings)
        if stored > self.target.storage_buffers:
            raise Unsupported(
                f"a kernel of {stored} buffers: {self.target.adapter} binds "
                f"{self.target.storage_buffers} at once",
                fix="compute it on the CPU",
            )
        parts = [*declared, *self.shared, *functions]
        for e in self.entries:
            text = "\n".join(e.lines)
            given = ", ".join(d for name, d in _BUILTINS.items() if re.search(rf"\b{name}\b", text))
            own = [line for name, line in unpacked if re.search(rf"\b{name}\b", text)]
            head = f"@compute @workgroup_size({self.workgroup})\nfn {e.name}({given}) {{"
            parts.append("\n".join([head, *own, *e.lines, "}"]))
        return Shader(
            "\n".join([*parts, ""]),
            schedule,
            self.workgroup,
            tuple(bindings),
            tuple(words),
            tuple(Dispatch(e.name, count(e.groups), count(e.times)) for e in self.entries),
            tuple(count(size * (8 if ty.endswith("64") else 4)) for ty, size in self.scratch),
        )

    def _words(self, text: str) -> tuple[list[Word], list[tuple[str, str]]]:
        """The words of a dispatch, and the names they have in the text."""
        words: list[Word] = []
        names: list[tuple[str, str]] = []
        for at in sorted({int(n) for n in _NUMBER.findall(text)}):
            names.append((f"n{at}", f"  let n{at} = bitcast<i32>(N[{len(words)}]);"))
            words.append(Word(NUMBER, at))
        for n, part in sorted({(int(a), int(b)) for a, b in _PARAM.findall(text)}):
            dtypes = in_memory(self.kernel.params[n])
            long = WIDTH[dtypes[part]] == 64
            first, at = part * (2 if long else 1), len(words)
            words += [Word(PARAM, n, first + k) for k in range(1 + long)]
            names.append((f"p{n}_{part}", f"  let p{n}_{part} = {_opened(dtypes[part], at)};"))
        if re.search(r"\bturn\b", text):
            names.append(("turn", f"  let turn = bitcast<i32>(N[{len(words)}]);"))
            words.append(Word(TURN))
        return words, names

    def _bindings(self, text: str, words: bool) -> tuple[list[Binding], list[str]]:
        bindings: list[Binding] = []
        declared: list[str] = []

        def bind(kind: str, n: int, name: str, ty: str, space: str = "storage, read_write") -> None:
            place = f"@group(0) @binding({len(bindings)})"
            declared.append(f"{place} var<{space}> {name}: {ty};")
            bindings.append(Binding(kind, n))

        for n in sorted({int(b) for b in _BUFFER.findall(text)}):
            bind(BUFFER, n, f"b{n}", f"array<{self._element(n)}>")
        for n, (ty, _) in enumerate(self.scratch):
            bind(SCRATCH, n, f"s{n}", f"array<{ty}>")
        if re.search(r"\bfault\b", text):
            bind(FAULT, 0, "fault", "array<atomic<u32>>")
        if words:
            bind(WORDS, 0, "N", "array<u32>", "storage, read")
        if re.search(r"\bZ\b", text):
            bind(ZERO, 0, "Z", "vec4<u32>", "uniform")
        return bindings, declared

    def _element(self, buffer: int) -> str:
        dtype = self.kernel.buffers[buffer].dtype
        if buffer in self.wide and dtype not in SHORT:
            return f"vec{self.wide[buffer]}<{element(dtype)}>"
        return f"atomic<{element(dtype)}>" if buffer in self.atomic else element(dtype)


def _opened(dtype: str, at: int) -> str:
    """A parameter of words."""
    ty, word = REGISTER[dtype], f"N[{at}]"
    if WIDTH[dtype] == 64:
        return f"bitcast<{ty}>(u64({word}) | (u64(N[{at + 1}]) << 32u))"
    if dtype == "bool":
        return f"(({word} & 255u) != 0u)"
    if WIDTH[dtype] < 32 and dtype[0] == "i":
        return f"(bitcast<i32>({word} << {32 - WIDTH[dtype]}u) >> {32 - WIDTH[dtype]}u)"
    if WIDTH[dtype] < 32:
        return f"({word} & {(1 << WIDTH[dtype]) - 1}u)"
    return word if ty == "u32" else f"bitcast<{ty}>({word})"


def global_number(w: Writer, workgroup: int) -> str:
    """The number of this invocation among all, of groups in two dimensions."""
    return w.let("i32", f"i32((group.x + group.y * grid.x) * {workgroup}u + lid)")


def spread_over(v: Invocation, axes: Sequence[int], extents: Sequence[Any], me: str) -> None:
    """Have axes stand where this number says, the last one the fastest."""
    w = v.w
    for axis, extent in list(zip(axes, extents, strict=True))[:0:-1]:
        above = w.let("i32", f"{me} / {number(extent)}")
        v.axes[axis] = w.let("i32", f"{me} - {above} * {number(extent)}")
        me = above
    if axes:
        v.axes[axes[0]] = me


def total(extents: Sequence[Any]) -> Any:
    """How many positions there are."""
    return prod(extents)


def scattered(kernel: Kernel) -> frozenset[int]:
    """The buffers of short elements that are stored one by one: others write to the same words."""
    return frozenset(s.buffer for s in kernel.stores if kernel.buffers[s.buffer].dtype in SHORT)
