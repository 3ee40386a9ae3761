"""The printed form of a kernel."""

from __future__ import annotations

import numpy as np

from tenfold.kernel.ir.kernel import REDUCED, SCRATCH, SEQUENTIAL, Instruction, Kernel
from tenfold.types import DTYPES


def show(kernel: Kernel) -> str:
    """The kernel as text: axes, buffers, instructions with their free axes, stores."""
    letter = {REDUCED: "reduced", SEQUENTIAL: "sequential"}
    axes = ", ".join(
        f"a{n}:{a.extent}" + (f" {letter[a.kind]}" if a.kind in letter else "")
        for n, a in enumerate(kernel.axes)
    )
    lines = [f"kernel ({axes})"]
    for n, buffer in enumerate(kernel.buffers):
        notes = f" alias {buffer.alias}" if buffer.alias else ""
        if buffer.role == SCRATCH:
            notes += f" rows {list(buffer.rows)}"
        lines.append(f"  b{n}: {buffer.role} {buffer.dtype}[{buffer.size}]{notes}")
    for n, instruction in enumerate(kernel.instructions):
        free = " ".join(f"a{a}" for a in sorted(kernel.free[n]))
        lines.append(f"  %{n} = {_line(instruction):<44}; {instruction.dtype} {free}".rstrip())
    for store in kernel.stores:
        when = f" if %{store.condition}" if store.condition is not None else ""
        value = f"%{store.value}"
        if store.second is not None:
            value += f" %{store.second}"
        if store.update:
            value = f"{store.update} with {value}"
        lines.append(f"  b{store.buffer}[{store.index}] = {value}{when}")
    lines += [f"  check %{c.condition} else fault {c.code}" for c in kernel.checks]
    return "\n".join(lines)


def _line(i: Instruction) -> str:
    args = " ".join(f"%{a}" for a in i.args)
    if i.op == "load":
        part = ".imag" if i.attr[1:] == (1,) else ""
        return f"load b{i.attr[0]}{part}[{i.index}]" + (f" if {args}" if args else "")
    if i.op == "const":
        return f"const {np.frombuffer(i.attr[0], DTYPES[i.dtype])[0]!s}"
    if i.op == "param":
        return f"param {i.attr[0]}" + (".imag" if i.attr[1:] == (1,) else "")
    if i.op == "index":
        return f"index {i.index}"
    if i.op == "inside":
        return f"inside {i.index} in [{i.attr[0]}, {i.attr[1]})"
    if i.op == "reduce":
        return f"reduce {i.attr[0]} {args} over {' '.join(f'a{a}' for a in i.attr[1:])}"
    if i.op == "state":
        return f"state {i.attr[0]} of {args}"
    if i.op in ("call", "rarely"):
        return f"{i.op} {i.attr[0]} {args}"
    return f"{i.op} {args}"
