"""tn.parity and tn.bisect: compiled programs beside the reference, node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import tenfold.parity  # noqa: F401  now: imported later it would take the place of tn.parity
from tenfold.api.jit import Jitted
from tenfold.reference import Callbacks

if TYPE_CHECKING:  # the compiler is loaded when something is compiled
    from pathlib import Path

    from tenfold.parity.find.bisect import Bisection
    from tenfold.parity.table import ParityTable


def parity(
    function: Callable[..., Any], *args: Any, backends: Sequence[str] = (), **kwargs: Any
) -> ParityTable:
    """Every node of a function, compiled, beside the reference: a table; by each of these backends,
    or by the function's own.

    Each node is judged on the reference's values for what its kernel reads. The columns: the
    largest error in units in the last place, NaN and infinities on one side alone, near-ties (where
    a comparison may go either way within the bounds), and the line.

    >>> import numpy as np, tenfold as tn
    >>> table = tn.parity(lambda x: np.sqrt(x) * 2, np.arange(3.0))
    >>> table.agrees, [row.op for row in table]
    (True, ['sqrt', 'mul'])
    """
    from tenfold.parity.table import ParityTable, compare_nodes

    found = []
    jitted = _jitted(function)
    for name in backends or (jitted.backend,):
        chosen = jitted if name == jitted.backend else jitted.on(name)
        traced, arrays, program = chosen.program_for(*args, **kwargs)
        rows = compare_nodes(program, arrays, Callbacks(traced.callbacks))
        found.append((program.backend.name, tuple(rows)))
    return ParityTable(tuple(found))


def bisect(
    function: Callable[..., Any],
    *args: Any,
    script: str | Path | None = "divergence.py",
    **kwargs: Any,
) -> Bisection:
    """The first node whose compiled value diverges from the reference's, and a script to show it.

    The plan is replayed step by step on the reference's values, through every round of its loops
    and the branches taken; then the bad kernel is looked into. The script, written where `script`
    says unless it is None or all is well, has a small graph and small inputs and needs nothing of
    the function.

    >>> import numpy as np, tenfold as tn
    >>> tn.bisect(lambda x: np.tanh(x).sum(), np.ones(5))
    the plan agrees with the reference at every step
    """
    from tenfold.parity.find.bisect import bisect as bisect_program

    traced, arrays, program = _jitted(function).program_for(*args, **kwargs)
    return bisect_program(program, traced.graph, arrays, Callbacks(traced.callbacks), script)


def _jitted(function: Callable[..., Any]) -> Jitted:
    return function if isinstance(function, Jitted) else Jitted(function)
