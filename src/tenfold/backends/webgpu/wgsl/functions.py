"""Functions of `kernel/maths` as WGSL, each once a module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.backends.webgpu.wgsl.instructions import instruction
from tenfold.backends.webgpu.wgsl.types import REGISTER, constant, floating
from tenfold.backends.webgpu.wgsl.writer import Writer
from tenfold.digest import sha256
from tenfold.kernel import maths
from tenfold.kernel.ir.kernel import Instruction
from tenfold.types import DTYPES

Name = tuple[str, str]


def computed(w: Writer, i: Instruction, sources: Sequence[str], args: Sequence[str]) -> str:
    """The name or text of what an instruction gives that reads its operands alone."""
    if i.op == "const":
        return constant(i.dtype, i.attr[0])
    if i.op == "lookup":
        return w.let(REGISTER[i.dtype], f"{_table(w, i.dtype, i.attr[0])}({args[0]})")
    if i.op == "call":
        found = w.let(REGISTER[i.dtype], _called(w, i, args))
        if floating(i.dtype):
            w.computed.add(found)
        return found
    if i.op == "rarely":
        found = w.var(REGISTER[i.dtype], args[1])
        with w.block(f"if ({args[0]})"):
            w.put(f"{found} = {_called(w, i, args[2:])};")
        if floating(i.dtype):
            w.computed.add(found)
        return found
    return instruction(w, i.op, i.dtype, sources, args)


def _called(w: Writer, i: Instruction, args: Sequence[str]) -> str:
    w.maths[i.attr[0], i.dtype] = None
    return f"{symbol(i.attr[0], i.dtype)}({', '.join(args)})"


def symbol(name: str, dtype: str) -> str:
    """
    >>> symbol("exp", "f32")
    'tn_exp_f32'
    """
    return f"tn_{name}_{dtype}"


def _table(w: Writer, dtype: str, raw: bytes) -> str:
    """A function that looks up an element of a constant table."""
    ty, size = REGISTER[dtype], DTYPES[dtype].itemsize
    name = f"table_{sha256(raw).hexdigest()[:12]}"
    values = [constant(dtype, raw[n : n + size]) for n in range(0, len(raw), size)]
    listed = ", ".join(values)
    w.tables[name] = (
        f"fn {name}(i: i32) -> {ty} {{\n"
        f"  var t = array<{ty}, {len(values)}>({listed});\n  return t[i];\n}}"
    )
    return name


def definitions(needed: Iterable[Name], target: WebGPUTarget) -> list[str]:
    """The text of functions, and of what they call."""
    found: dict[Name, list[str]] = {}
    waiting = list(needed)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name], more = defined(*name, target)
            waiting += more
    return list(dict.fromkeys(text for texts in found.values() for text in texts))


@cache
def defined(name: str, dtype: str, target: WebGPUTarget) -> tuple[list[str], list[Name]]:
    """One function and its tables as text, and the others that it calls."""
    f = maths.function(name, dtype, target.fma)
    w = Writer(target)
    values: list[str] = []
    for i in f.instructions:
        if i.op == "param":
            values.append(f"a{i.attr[0]}")
            w.computed.add(values[-1])
            continue
        sources = [f.instructions[a].dtype for a in i.args]
        values.append(computed(w, i, sources, [values[a] for a in i.args]))
    given = ", ".join(f"a{n}: {REGISTER[d]}" for n, d in enumerate(f.params))
    head = f"fn {symbol(name, dtype)}({given}) -> {REGISTER[dtype]} {{"
    text = "\n".join([head, *w.lines, f"  return {values[-1]};", "}"])
    return [*w.tables.values(), text], list(w.maths)
