"""What a store with an update writes: the list of instructions that joins two values, in place."""

from __future__ import annotations

from tenfold.backends.cpu.emit.state import Parts
from tenfold.backends.llvm.instructions import instruction
from tenfold.backends.llvm.writer import COMPUTE, Writer, scalar_text
from tenfold.kernel.passes.legalise import update


def joined(w: Writer, name: str, dtype: str, there: Parts, given: Parts, wide: bool) -> Parts:
    """What is there joined to what is given, in a buffer of a dtype."""
    body, values = update(name, dtype), list[str]()
    for i in body.instructions:
        if i.op == "param":
            values.append((there, given)[i.attr[0]][i.attr[1]])
        elif i.op == "const":
            text = scalar_text(i.dtype, i.attr[0])
            values.append(w.splat(COMPUTE[i.dtype], text) if wide else text)
        else:
            sources = [body.instructions[a].dtype for a in i.args]
            args = [values[a] for a in i.args]
            values.append(instruction(w, i.op, i.dtype, sources, args, wide))
    (store,) = body.stores
    return tuple(values[v] for v in (store.value, store.second) if v is not None)
