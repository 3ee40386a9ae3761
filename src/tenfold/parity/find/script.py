"""Scripts that show a divergence without the user's code."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.backends.program import Program
from tenfold.backends.registry import DEFAULT, backend_named
from tenfold.graph import Graph
from tenfold.parity.check import check
from tenfold.parity.replay.guards import try_arguments
from tenfold.parity.verdict import GUARD, Case, Disagreement
from tenfold.reference import evaluate
from tenfold.types import SHORT, parse_type

Array = np.ndarray[Any, Any]
_LITERAL = 64  # elements up to which an input is written out


def write_script(case: Case, fault: Disagreement, program: Program) -> str:
    """The text of a script; it exits with 1 where the divergence shows."""
    inputs = [_input(a) for a in case.arrays]
    what = str(fault).replace("\\", "/").replace('"""', "'''")
    guards = ", guards=True" if fault.kind == GUARD else ""
    options = (", strict=True" if program.strict else "") + guards
    if program.backend.name != DEFAULT:
        options += f", backend={program.backend.name!r}"
    lines = [
        f'"""{what}"""',
        "",
        "import numpy as np",
        "",
        "import tenfold as tn",
        "from tenfold.parity.find.script import raw, show",
        "",
        f'graph = tn.parse(r"""{case.graph}""")',
        "inputs = [",
        *(f"    {text}," for text in inputs),
        "]",
        f"raise SystemExit(show(graph, inputs{options}))",
        "",
    ]
    text = "\n".join(lines)
    if "np." not in "".join(inputs):
        text = text.replace("import numpy as np\n\n", "", 1)
    if "raw(" not in "".join(inputs):
        text = text.replace("import raw, show", "import show", 1)
    return text


def _input(given: Array) -> str:
    array = np.asarray(given)
    short = SHORT[np.dtype(array.dtype)]
    finite = bool(np.isfinite(array).all()) if array.dtype.kind in "fc" else True
    if array.size <= _LITERAL and finite and array.dtype.kind in "biufc" and short != "bf16":
        shape = f".reshape({array.shape})" if array.ndim != 1 else ""
        return f'np.array({array.reshape(-1).tolist()}, "{array.dtype}"){shape}'
    data = base64.b85encode(zlib.compress(np.ascontiguousarray(array).tobytes(), 9)).decode()
    extents = ",".join(map(str, array.shape))
    kind = f"{short}[{extents}]" if array.ndim else short
    return f'raw("{kind}", {data!r})'


def raw(type: str, data: str) -> Array:
    """An array of a type from packed bits."""
    found = parse_type(type)
    made = np.frombuffer(zlib.decompress(base64.b85decode(data)), found.dtype)
    return made.reshape(found.shape).copy()


def show(
    graph: Graph,
    inputs: Sequence[Array],
    *,
    backend: str = DEFAULT,
    strict: bool = False,
    guards: bool = False,
) -> int:
    """Print what the reference gives, what the compiled program gives, and whether they agree."""
    program = backend_named(backend).compile(graph, strict=strict)
    if guards:
        _, fault = try_arguments(program)
        print(fault or "the guards turn away what they should")
        return int(fault is not None)
    found = check(program, graph, inputs, None, None, every=True)
    print("reference:", *evaluate(graph, inputs), sep="\n")
    print("compiled:", *program(inputs), sep="\n")
    print(found.verdict)
    return int(not found.agrees)
