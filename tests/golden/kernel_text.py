"""Kernels read from the text that `kernel/ir/text` shows."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tenfold.kernel import Kernel, verify
from tenfold.kernel.ir.index import Index, axis, constant, value
from tenfold.kernel.ir.kernel import Axis, Buffer, Check, Instruction, Store
from tenfold.types import DTYPES

_BUFFER = re.compile(r"b\d+: (\w+) (\w+)\[(\d+)\](?: alias (\d+))?(?: rows \[(.*)\])?")
_VALUE = re.compile(r"%\d+ = (\S+) ?(.*?)\s*; (\w+).*")
_STORE = re.compile(r"b(\d+)\[(.*)\] = (?:(\w+) with )?%(\d+)(?: if %(\d+))?")
_CHECK = re.compile(r"check %(\d+) else fault (\d+)")
_LOAD = re.compile(r"b(\d+)\[(.*)\](?: if %(\d+))?")


def parse_kernel(text: str) -> Kernel:
    """The kernel that this text shows.

    >>> from tenfold.kernel import Builder
    >>> b = Builder()
    >>> x, y = b.buffer("f32", 12), b.buffer("f32", 12, "write")
    >>> i = b.axis(12)
    >>> b.store(y, i, b.load(x, -i + 11))
    >>> parse_kernel(str(b.finish())) == b.finish()
    True
    """
    head, *lines = [line.strip() for line in text.strip().splitlines()]
    axes = [
        Axis(int(extent), kind or "parallel")
        for extent, kind in re.findall(r"a\d+:(\d+)(?: (\w+))?", head)
    ]
    names = {f"a{n}": axis(n, a.extent) for n, a in enumerate(axes)}
    buffers: list[Buffer] = []
    params: dict[int, str] = {}
    instructions: list[Instruction] = []
    stores: list[Store] = []
    checks: list[Check] = []

    def index(text: str) -> Index:
        plain = re.sub(r"%(\d+):(\d+)", r"v(\1, \2)", text)
        found = eval(plain, {"__builtins__": {}}, {**names, "v": value})
        return constant(found) if isinstance(found, int) else found

    for line in lines:
        if found := _BUFFER.fullmatch(line):
            role, dtype, size, alias, rows = found.groups()
            own = tuple(map(int, rows.split(", "))) if rows else ()
            buffers.append(Buffer(dtype, int(size), role, int(alias or 0), own))
        elif found := _VALUE.fullmatch(line):
            op, rest, dtype = found.groups()
            instructions.append(_instruction(op, rest, dtype, index))
            if op == "param":
                params[int(rest)] = dtype
        elif found := _STORE.fullmatch(line):
            buffer, where, update, kept, when = found.groups()
            condition = None if when is None else int(when)
            stores.append(Store(int(buffer), index(where), int(kept), condition, update or ""))
        elif found := _CHECK.fullmatch(line):
            checks.append(Check(int(found[1]), int(found[2])))
        else:
            raise ValueError(f"{line!r} is no line of a kernel")
    kernel = Kernel(
        tuple(axes),
        tuple(buffers),
        tuple(params[n] for n in sorted(params)),
        tuple(instructions),
        tuple(stores),
        tuple(checks),
    )
    verify(kernel)
    return kernel


def _instruction(op: str, rest: str, dtype: str, index: Any) -> Instruction:
    args = tuple(map(int, re.findall(r"%(\d+)(?!:)\b", rest)))
    match op:
        case "load":
            found = _LOAD.fullmatch(rest)
            assert found is not None, rest
            args = () if found[3] is None else (int(found[3]),)
            return Instruction(op, dtype, args, (int(found[1]),), index(found[2]))
        case "const":
            raw = np.array(complex(rest) if dtype[0] == "c" else rest == "True" or float(rest))
            if dtype[0] in "iu":
                raw = np.array(int(rest))
            return Instruction(op, dtype, (), (raw.astype(DTYPES[dtype]).tobytes(),))
        case "param":
            return Instruction(op, dtype, (), (int(rest),))
        case "index":
            return Instruction(op, dtype, (), (), index(rest))
        case "inside":
            where, low, high = re.fullmatch(r"(.*) in \[(-?\d+), (-?\d+)\)", rest).groups()  # type: ignore[union-attr]
            return Instruction(op, dtype, (), (int(low), int(high)), index(where))
        case "reduce":
            kind, over = rest.split()[0], rest.split(" over ")[1]
            axes = tuple(int(a[1:]) for a in over.split())
            return Instruction(op, dtype, args, (kind, *axes))
        case "state":
            return Instruction(op, dtype, args, (int(rest.split()[0]),))
    return Instruction(op, dtype, args)
