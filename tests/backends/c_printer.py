"""Legal kernels as plain C: all that a printer has to know, and nothing that makes it fast.

A kernel becomes one function of the CPU backend's signature: addresses of buffers, parameters of
sixteen bytes each, and the part of the outermost axis that it is to run over. Its loops are in the
order of a schedule. Sums and products of floats write down their terms and join them afterwards,
in the shape of the kernel's fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, prod
from pathlib import Path
from typing import Any

import numpy as np

from tenfold.kernel import maths
from tenfold.kernel.analyse.nest import Compute, Guard, Item, Loop, Write, nest
from tenfold.kernel.ir.index import AXIS, DIV, VALUE, Index
from tenfold.kernel.ir.kernel import Instruction, Kernel, Store
from tenfold.kernel.ir.legal import in_memory
from tenfold.kernel.passes.legalise import update
from tenfold.types import DTYPES

TYPES = {f"{sign}{n}": f"{'u' * (sign == 'u')}int{n}_t" for sign in "iu" for n in (8, 16, 32, 64)}
TYPES |= {"bool": "uint8_t", "f32": "float", "f64": "double"}

# {t} is the type of the result, {u} the unsigned type as wide as the operand. Integers wrap: the
# compiler is told so.
_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%", "and": "&", "or": "|"}
_INFIX |= {"xor": "^", "shl": "<<", "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<="}
_INFIX |= {"gt": ">", "ge": ">="}
_CALLED = {"abs": "fabs", "round": "rint"} | {n: n for n in ("sqrt", "floor", "ceil", "trunc")}
EXPRESSIONS = {
    **{name: f"({{t}})({{0}} {sign} {{1}})" for name, sign in _INFIX.items()},
    **{name: f"{called}({{0}})" for name, called in _CALLED.items()},
    "fma": "fma({0}, {1}, {2})",
    "neg": "-{0}",
    "min": "({0} < {1} ? {0} : {1})",
    "max": "({0} > {1} ? {0} : {1})",
    "popcount": "({t})__builtin_popcountll(({u}){0})",
    "select": "({0} ? {1} : {2})",
    "cast": "({t}){0}",
    "bitcast": "BITS({t}, {0})",
    "from_half": "(float)BITS(_Float16, {0})",
    "to_half": "BITS(uint16_t, (_Float16){0})",
}

# How a value joins what is held, {h}, where any order gives the same.
HELD = {
    "sum": "{h} = ({t})({h} + {0});",
    "prod": "{h} = ({t})({h} * {0});",
    "pairs": "TIMES({t}, {h}, {h}_1, {0}, {1})",
    "fused prod": "FUSED({t}, {h}, {h}_1, {0}, {1})",
    "any": "{h} |= {0};",
    "all": "{h} &= {0};",
    "min": "if ({0} < {h} || {0} != {0}) {h} = {0};",
    "max": "if ({0} > {h} || {0} != {0}) {h} = {0};",
    "argmin": "if (FIRST({0}, {1}, {h}, {h}_1, <)) {h} = {0}, {h}_1 = {1};",
    "argmax": "if (FIRST({0}, {1}, {h}, {h}_1, >)) {h} = {0}, {h}_1 = {1};",
}


def printed(kernels: Sequence[tuple[str, Kernel, Any]]) -> str:
    """A C file with a function for each legal kernel, by its name, with the loops of a schedule."""
    functions: dict[str, str] = {}
    for name, kernel, schedule in kernels:
        functions[name] = Printer(functions, kernel, schedule).function(name)
    (fold,) = {kernel.fold for _, kernel, _ in kernels}
    sizes = {"LANES": fold.lanes, "COPIES": fold.copies, "RUN": fold.run, "STRETCH": fold.stretch}
    parts = [f"#define {name} {size}ll" for name, size in sizes.items()]
    parts.append(Path(__file__).with_name("c_prelude.h").read_text())
    return "\n".join([*parts, *functions.values(), ""])


def constant(raw: bytes, dtype: str) -> str:
    number, t = f"0x{int.from_bytes(raw, 'little'):x}ull", TYPES[dtype]
    return f"BITS({t}, (uint{8 * len(raw)}_t){number})" if dtype[0] == "f" else f"({t}){number}"


def position(index: Index | None) -> str:
    assert index is not None
    parts = [f"{index.const}ll"]
    for atom, k in index.terms:
        text = f"{'a' if atom.kind == AXIS else '(int64_t)v'}{atom.of}"
        if atom.kind not in (AXIS, VALUE):
            called = "quotient" if atom.kind == DIV else "rest"
            text = f"{called}({position(atom.of)}, {atom.bound})"
        parts.append(f"{k}ll * {text}")
    return " + ".join(parts)


class Printer:
    """Prints one kernel; what it calls is added to the functions of the file, each once."""

    def __init__(self, functions: dict[str, str], kernel: Kernel, schedule: Any) -> None:
        self.functions, self.kernel, self.schedule = functions, kernel, schedule
        self.out: list[str] = []

    def function(self, name: str) -> str:
        kernel, order = self.kernel, self.schedule.order
        head = f"int32_t {name}(void **buffers, char *params, int64_t low, int64_t high) {{"
        self.out = [head, "int32_t fault = 0;"]
        for n, buffer in enumerate(kernel.buffers):
            self.out.append(f"{TYPES[in_memory(buffer.dtype)[0]]} *b{n} = buffers[{n}];")
        if all(kernel.axes[a].extent for a in order):
            self.block(nest(kernel, order, self.schedule.reduced), False)
        return "\n".join([*self.out, "return fault;", "}"])

    # Lists of instructions: functions of `kernel/maths`, and what an update makes of memory.

    def call(self, name: str, dtype: str) -> str:
        full = f"{name}_{dtype}"
        if full not in self.functions:
            f = maths.function(name, dtype)
            given = ", ".join(f"{TYPES[d]} p{n}_0" for n, d in enumerate(f.params))
            lines = self.lines(f.instructions)
            end = f"return v{len(lines) - 1};\n}}"
            self.functions[full] = self.text(f"{TYPES[dtype]} {full}({given})", [*lines, end])
        return full

    def update(self, name: str, dtype: str) -> str:
        full = f"update_{name}_{dtype}"
        if full not in self.functions:
            kernel, t = update(name, dtype), TYPES[in_memory(dtype)[0]]
            (store,), parts = kernel.stores, range(len(in_memory(dtype)))
            given = "".join(f", {t} p1_{n}" for n in parts)
            held = [f"const {t} p0_{n} = at[{n}];" for n in parts]
            ends = [f"at[{n}] = v{(store.value, store.second)[n]};" for n in parts]
            lines = [*held, *self.lines(kernel.instructions), *ends, "}"]
            self.functions[full] = self.text(f"void {full}({t} *at{given})", lines)
        return full

    def text(self, head: str, lines: Iterable[str]) -> str:
        return "\n".join([f"static {head} {{", *lines])

    def lines(self, instructions: Sequence[Instruction]) -> list[str]:
        made = []
        for n, i in enumerate(instructions):
            text = f"p{i.attr[0]}_{(*i.attr, 0)[1]}" if i.op == "param" else ""
            text = text or self.expression(i, [instructions[a].dtype for a in i.args])
            made.append(f"const {TYPES[i.dtype]} v{n} = {text};")
        return made

    def expression(self, i: Instruction, dtypes: Sequence[str]) -> str:
        """An instruction that reads its operands alone."""
        args, t, size = [f"v{a}" for a in i.args], TYPES[i.dtype], DTYPES[i.dtype].itemsize
        if i.op == "const":
            return constant(i.attr[0], i.dtype)
        if i.op == "cast" and i.dtype == "bool":
            return f"({args[0]} & 1)"
        if i.op == "lookup":
            raw = i.attr[0]
            row = [constant(raw[n : n + size], i.dtype) for n in range(0, len(raw), size)]
            return f"((const {t}[]){{{', '.join(row)}}})[{args[0]}]"
        if i.op == "call":
            return f"{self.call(i.attr[0], i.dtype)}({', '.join(args)})"
        if i.op == "rarely":
            called = f"{self.call(i.attr[0], i.dtype)}({', '.join(args[2:])})"
            return f"({args[0]} ? {called} : {args[1]})"
        return EXPRESSIONS[i.op].format(*args, t=t, u=TYPES.get(f"u{dtypes[0][1:]}"))

    # Loops; `wide` where one around has its axis across lanes.

    def block(self, items: Iterable[Item], wide: bool) -> None:
        for item in items:
            if isinstance(item, Compute):
                i = self.kernel.instructions[item.value]
                self.out.append(f"const {TYPES[i.dtype]} v{item.value} = {self.value(i)};")
            elif isinstance(item, Write):
                self.store(self.kernel.stores[item.store])
            elif isinstance(item, Guard):
                check = self.kernel.checks[item.check]
                self.out.append(f"if (!v{check.condition}) fault |= 1 << {check.code};")
            elif item.members:
                self.reduction(item, wide)
            else:
                self.loop(item, wide)

    def loop(self, loop: Loop, wide: bool) -> None:
        """The innermost of a reduction joins what was computed to what is held."""
        a, inner, extent = f"a{loop.axis}", loop.inner, self.kernel.axes[loop.axis].extent
        low, high = ("low", "high") if loop.axis == self.schedule.outer else (0, extent)
        self.out.append(f"for (int64_t {a} = {low}; {a} < {high}; {a}++) {{")
        self.block(loop.body[:-1] if inner else loop.body, wide or loop.axis in self.schedule.lanes)
        if inner:
            self.loop(inner, wide)
        else:
            self.out += [self.joined(m) for m in loop.members]
        self.out.append("}")

    def value(self, i: Instruction) -> str:
        t = TYPES[i.dtype]
        if i.op == "load":
            loaded = self.at(i.attr[0], i.index, i.attr[1])
            return f"(v{i.args[0]} ? {loaded} : 0)" if i.args else loaded
        if i.op == "param":
            return f"*({t} *)(params + {16 * i.attr[0] + i.attr[1] * DTYPES[i.dtype].itemsize})"
        if i.op == "index":
            return f"({t})({position(i.index)})"
        if i.op == "inside":
            return f"({i.attr[0]} <= {position(i.index)} && {position(i.index)} < {i.attr[1]})"
        if i.op == "state":
            return f"v{i.args[0]}_{i.attr[0]}"
        return self.expression(i, [self.kernel.instructions[a].dtype for a in i.args])

    def at(self, buffer: int, index: Index | None, part: int) -> str:
        """An element of a buffer; complex numbers are two each."""
        count = len(in_memory(self.kernel.buffers[buffer].dtype))
        return f"b{buffer}[{count} * ({position(index)}) + {part}]"

    def store(self, s: Store) -> None:
        values = [v for v in (s.value, s.second) if v is not None]
        text = "".join(f"{self.at(s.buffer, s.index, n)} = v{v}; " for n, v in enumerate(values))
        if s.update:
            called = self.update(s.update, self.kernel.buffers[s.buffer].dtype)
            given = "".join(f", v{v}" for v in values)
            text = f"{called}(&{self.at(s.buffer, s.index, 0)}{given}); "
        self.out.append(("" if s.condition is None else f"if (v{s.condition}) ") + f"{{ {text}}}")

    # Reductions: `t` are the terms of one that has a shape, `n` counts them.

    def reduction(self, loop: Loop, wide: bool) -> None:
        axes, inner = [loop.axis], loop.inner
        while inner is not None:
            axes.append(inner.axis)
            inner = inner.inner
        dims = [self.kernel.axes[a].extent for a in axes]
        along = int(not wide and axes[-1] in self.schedule.lanes)
        for m in loop.members:
            self.begin(m, prod(dims))
        self.loop(loop, wide)
        for m in loop.members:
            i = self.kernel.instructions[m]
            if self.shape(i):
                form = f"(form){{'{self.shape(i)}', {int(i.dtype == 'f32')}}}"
                row = f"(int64_t[]){{{', '.join(map(str, dims))}}}"
                made = f"v{m} = fold({form}, {along}, {len(dims)}, {row}, t{m});"
                self.out.append(made if prod(dims) else f"free(t{m});")

    def shape(self, i: Instruction) -> str:
        """The kind of a reduction that has a shape, or nothing."""
        kinds = {"sum": "s", "dot": "d", "prod": "p" * (len(i.args) == 1)}
        return kinds.get(i.attr[0], "") if i.dtype[0] == "f" else ""

    def begin(self, m: int, count: int) -> None:
        """What is held before the first value, and room for so many terms."""
        i = self.kernel.instructions[m]
        which, dtype = i.attr[0], DTYPES[i.dtype]
        first: float = which.endswith(("prod", "all"))
        if which.endswith(("min", "max")):
            ends = (-inf, inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
            first = ends[which.endswith("min")]
        held = constant(np.array(first, dtype).tobytes(), i.dtype)
        second = TYPES[self.kernel.instructions[i.args[-1]].dtype]
        far = "INT64_MAX" if which.startswith("arg") else "0"
        self.out.append(f"{TYPES[i.dtype]} v{m} = {held}; {second} v{m}_1 = {far};")
        if self.shape(i):
            self.out.append(f"term *t{m} = malloc({count} * sizeof(term)); int64_t n{m} = 0;")

    def joined(self, m: int) -> str:
        i = self.kernel.instructions[m]
        args = [f"v{a}" for a in i.args]
        if self.shape(i):
            return f"t{m}[n{m}++] = (term){{{', '.join(args)}}};"
        which = "pairs" if i.attr[0] == "prod" and len(args) > 1 else i.attr[0]
        return HELD[which].format(*args, h=f"v{m}", t=TYPES[i.dtype])
