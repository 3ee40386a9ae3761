"""Bind a plan to arrays that lie on its device: `plan.bind`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.api.call.signature import Signature
from tenfold.backends.file import Reference
from tenfold.backends.program import Program
from tenfold.errors import PlanError, TypeMismatch, Unsupported
from tenfold.trace.containers import flatten

Array = np.ndarray[Any, Any]


def bind(
    program: Program | Reference,
    signature: Signature,
    captures: Sequence[Array],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """The program on these arguments and captured arrays, to be replayed."""
    _check(program, signature)
    assert isinstance(program, Program)
    structure, leaves = flatten((args, kwargs))
    memory: dict[int, Any] = {}  # by the identity of what stands for it
    for n, leaf in enumerate(leaves):
        found = program.memory_of(leaf)
        if found is not None:  # an array of the same type that takes no memory
            leaves[n] = np.broadcast_to(np.zeros((), found.dtype), found.shape)
            memory[id(leaves[n])] = found
    args, kwargs = structure.unflatten(leaves)
    given, _ = signature.bind(args, kwargs)
    for name, leaf in zip(signature.leaf_names, given, strict=True):
        if id(leaf) not in memory:
            raise TypeMismatch(
                f"bind: {name} does not lie on the device", fix=_remedy(leaf, program.backend.name)
            )
    inputs = [memory[id(leaf)] for leaf in given]
    bound = program.bind_memory(signature.leaf_names, inputs, captures)
    bound.outputs = signature.form.outputs.unflatten(bound.results)
    return bound


def _check(program: Program | Reference, signature: Signature) -> None:
    """Raise where a plan can't be bound, whatever its arguments."""
    if not isinstance(program, Program) or program.backend.put is None:
        name = program.backend.name if isinstance(program, Program) else "cpu"
        raise Unsupported(
            f"bind: the backend {name!r} has no memory of its own",
            fix="call the plan: it looks at its arguments in a fraction of a microsecond",
        )
    if not program.binds:
        raise Unsupported(
            f"bind: the backend {program.backend.name!r} replays no plans",
            fix="call the plan: arrays on its device are taken where they lie, and results stay",
        )
    if program.refuted is not None or (program.unjudged and program.certificate is None):
        what = "never checked" if program.refuted is None else "refuted"
        raise PlanError(
            f"bind: the plan of {signature.name} was {what}",
            fix="call it once: that checks it, and says what does not agree",
        )
    if signature.updates:
        name = signature.leaf_names[signature.updates[0]]
        raise Unsupported(
            f"bind: {signature.name} updates {name} in place",
            fix="return the new value, and bind its memory as the next call's argument",
        )


def _remedy(leaf: Any, backend: str) -> str:
    if isinstance(leaf, (int, float, complex)) and not isinstance(leaf, np.generic):
        return "make the plan for an array in place of this number, and bind one"
    return f"bring it there, tn.device_put(x, {backend!r}), and write to that"
