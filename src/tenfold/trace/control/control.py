"""Control flow: cond, switch, while_loop, fori_loop, scan, map, reduce.

Each is one node, whatever the number of rounds, whose scopes are the branches and bodies. State
may stand in any container. Outside a trace they run at once.

What a branch or body is given is its own: it may update it in place, and the caller's array stays
as it was. An array that it uses from around it can't be updated there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch, Unsupported, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.control import plain
from tenfold.trace.control.agree import LoopState
from tenfold.trace.control.branch import one_array, switch_node, truth
from tenfold.trace.control.eager import at_once
from tenfold.trace.control.inner import called, label, trace_inner
from tenfold.trace.control.loop import (
    bound,
    finished,
    rounds_of,
    scan_node,
    settle,
    while_node,
)
from tenfold.trace.operand import as_value
from tenfold.trace.scope import Scope, current, is_plain
from tenfold.trace.source import describe, here
from tenfold.trace.surface.emit import axes_of
from tenfold.trace.surface.ufuncs.promotion import common_dtype
from tenfold.types import I64, TensorType

Function = Callable[..., Any]


def cond(pred: Any, true_fn: Function, false_fn: Function, *operands: Any) -> Any:
    """What `true_fn(*operands)` gives where the predicate holds, else `false_fn(*operands)`.

    Only the branch taken runs. Results of different dtypes or shapes are promoted and broadcast
    as `np.where` would.

    >>> import numpy as np, tenfold as tn
    >>> @tn.jit
    ... def halve(x):
    ...     return tn.cond(x.sum() > 10, lambda y: y / 2, lambda y: y, x)
    >>> halve(np.array([8.0, 4.0])), halve(np.array([1.0, 2.0]))
    (array([4., 2.]), array([1., 2.]))
    """
    called("cond", "true_fn", true_fn)
    called("cond", "false_fn", false_fn)
    scope = current()
    if is_plain():
        return plain.cond(pred, true_fn, false_fn, operands)
    if scope is None:
        return at_once(lambda p, args: cond(p, true_fn, false_fn, *args), pred, operands)
    index = truth("cond: the predicate", pred, scope)
    # As an index the predicate is 0 or 1; messages name the branches in the user's order.
    return switch_node(
        "cond", index, {"true_fn": true_fn, "false_fn": false_fn}, operands, flip=True
    )


def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """What the branch at the index gives for the operands; the index is clamped to their number.

    >>> import numpy as np, tenfold as tn
    >>> f = tn.jit(lambda i, x: tn.switch(i, [np.sin, np.cos, np.negative], x))
    >>> f(2, np.array([1.0, 2.0])), f(-7, np.array([0.0]))
    (array([-1., -2.]), array([0.]))
    """
    if not isinstance(branches, Sequence) or not branches:
        raise ValueProblem(
            "switch: there are no branches",
            where=describe(here()),
            fix="give a list of at least one function",
        )
    for i, branch in enumerate(branches):
        called("switch", f"branch {i}", branch)
    scope = current()
    if is_plain():
        return plain.switch(index, branches, operands)
    if scope is None:
        return at_once(lambda i, args: switch(i, branches, *args), index, operands)
    value = one_array("switch: the index", index, scope)
    type = scope.builder.types[value]
    if type.shape or type.kind not in "biu":
        raise TypeMismatch(
            f"switch: the index is {type}, not an integer scalar",
            where=describe(here()),
            fix="cast it: index.astype(int); take one element if it is an array",
        )
    named = {f"branch {i}": branch for i, branch in enumerate(branches)}
    return switch_node("switch", value, named, operands)


def while_loop(cond_fn: Function, body_fn: Function, init: Any) -> Any:
    """The state after `state = body_fn(state)` for as long as `cond_fn(state)` holds.

    The state keeps its containers, shapes and dtypes; a Python number it starts from takes the
    dtype the body gives it.

    >>> import numpy as np, tenfold as tn
    >>> @tn.jit
    ... def steps(n):                                  # Collatz
    ...     halve_or_triple = lambda n: np.where(n % 2 == 0, n // 2, 3 * n + 1)
    ...     state = {"n": n, "count": 0}
    ...     more = lambda s: s["n"] != 1
    ...     step = lambda s: {"n": halve_or_triple(s["n"]), "count": s["count"] + 1}
    ...     return tn.while_loop(more, step, state)["count"]
    >>> int(steps(np.int64(6)))
    8
    """
    called("while_loop", "cond_fn", cond_fn)
    called("while_loop", "body_fn", body_fn)
    scope = current()
    if is_plain():
        return plain.while_loop(cond_fn, body_fn, init)
    if scope is None:
        return at_once(lambda state: while_loop(cond_fn, body_fn, state), init)
    state, body = settle(
        label("while_loop", body_fn),
        LoopState.of(init, "state"),
        lambda state: trace_inner(
            label("while_loop", body_fn), lambda inner: body_fn(state.arguments(inner))
        ),
    )

    def test(inner: Scope) -> Any:
        found = cond_fn(state.arguments(inner))
        return Array(inner, truth("while_loop: what cond_fn returns", found, inner))

    condition = trace_inner(label("while_loop", cond_fn), test)
    return finished(state, scope, while_node(state, body, condition))


def fori_loop(lower: Any, upper: Any, body_fn: Function, init: Any) -> Any:
    """The state after `state = body_fn(i, state)` for i from lower up to, not with, upper.

    >>> import numpy as np, tenfold as tn
    >>> power = tn.jit(lambda x: tn.fori_loop(0, 3, lambda i, y: y * x, 1.0))
    >>> power(np.array(2.0))
    np.float64(8.0)
    """
    called("fori_loop", "body_fn", body_fn)
    scope = current()
    if is_plain():
        return plain.fori_loop(bound("lower", lower), bound("upper", upper), body_fn, init)
    if scope is None:
        return at_once(lambda state: fori_loop(lower, upper, body_fn, state), init)
    first, end = bound("lower", lower), bound("upper", upper)

    def step(counter: Any, state: Any) -> Any:
        return counter + 1, body_fn(counter, state)

    if isinstance(first, int) and isinstance(end, int):
        state, values, _ = scan_node(
            label("fori_loop", body_fn),
            lambda carry, _: (step(*carry), ()),
            LoopState.of((first, init), "state", "[1]"),
            (),
            length=max(0, end - first),
        )
        return finished(state, scope, values)[1]
    if not isinstance(first, int):
        first = Array(scope, as_value(first, scope, I64), weak=int)
    state, body = settle(
        label("fori_loop", body_fn),
        LoopState.of((first, init), "state", "[1]"),
        lambda state: trace_inner(
            label("fori_loop", body_fn), lambda inner: step(*state.arguments(inner))
        ),
    )

    def test(inner: Scope) -> Any:
        return state.arguments(inner)[0] < Array(inner, as_value(end, inner, I64))

    condition = trace_inner("fori_loop", test)
    return finished(state, scope, while_node(state, body, condition))[1]


def scan(
    f: Function,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Any, Any]:
    """Go along the first axis of `xs`: `carry, y = f(carry, x)`; gives the last carry and the ys
    stacked. `reverse` goes from the end; `unroll` says how many rounds a compiler may write out.

    >>> import numpy as np, tenfold as tn
    >>> running = tn.jit(lambda x: tn.scan(lambda c, v: (c + v, c + v), 0.0, x))
    >>> running(np.array([1.0, 2.0, 3.0]))
    (np.float64(6.0), array([1., 3., 6.]))
    """
    called("scan", "f", f)
    scope = current()
    if is_plain() and (count := rounds_of(label("scan", f), xs, length)):
        return plain.scan(label("scan", f), f, init, xs, count, reverse)
    if scope is None:
        return at_once(  # type: ignore[no-any-return]
            lambda carry, x: scan(f, carry, x, length, reverse, unroll), init, xs
        )
    if not isinstance(unroll, int) or unroll < 1:
        raise ValueProblem(
            f"scan: unroll is {unroll!r}", where=describe(here()), fix="give 1 or more"
        )
    state = LoopState.of(init, "carry")
    state, values, ys = scan_node(label("scan", f), f, state, xs, length, reverse, unroll)
    count = len(state.forms)
    stacked = [Array(scope, v) for v in values[count:]]
    return finished(state, scope, values[:count]), ys.unflatten(stacked)


def map(f: Function, xs: Any) -> Any:
    """What `f` gives for each entry along the first axis of `xs`, stacked.

    >>> import numpy as np, tenfold as tn
    >>> tn.map(lambda row: row / row.sum(), np.array([[1.0, 3.0], [2.0, 2.0]]))
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """
    called("map", "f", f)
    scope = current()
    if is_plain() and (count := rounds_of(label("map", f), xs)):
        return plain.scan(label("map", f), lambda carry, x: ((), f(x)), (), xs, count, False)[1]
    if scope is None:
        return at_once(lambda x: map(f, x), xs)
    state = LoopState.of((), "carry")
    _, values, ys = scan_node(label("map", f), lambda carry, x: (carry, f(x)), state, xs)
    return ys.unflatten([Array(scope, v) for v in values])


def reduce(f: Function, x: Any, init: Any, axis: Any = None) -> Any:
    """Fold an associative function of two scalars over axes of an array, from `init` on.

    >>> import numpy as np, tenfold as tn
    >>> longest = lambda a, b: np.where(np.abs(a) < np.abs(b), b, a)
    >>> tn.reduce(longest, np.array([[1.0, -5.0], [4.0, 2.0]]), 0.0, axis=1)
    array([-5.,  4.])
    """
    called("reduce", "f", f)
    scope = current()
    if is_plain():
        return plain.reduce(f, x, init, axes_of(axis, np.ndim(x)))
    if scope is None:
        return at_once(lambda a, b: reduce(f, a, b, axis), x, init)
    dtype = common_dtype(x, init)
    array = as_value(x, scope, dtype)
    start = as_value(init, scope, dtype)
    if scope.builder.types[start].shape:
        raise ShapeError(
            f"reduce: init is {scope.builder.types[start]}, not a scalar",
            where=describe(here()),
            fix="start from one number, such as 0.0",
        )
    scalar = TensorType(dtype, ())

    def call(inner: Scope) -> Any:
        return f(*(Array(inner, inner.builder.parameter(scalar)) for _ in range(2)))

    state = LoopState.of(Array(scope, start), "result")
    folded = trace_inner(label("reduce", f), call)
    state.after(label("reduce", f), folded.structure, folded.leaves)
    folded.give(folded.leaves[0], scalar)
    if folded.captures():
        raise Unsupported(
            "reduce: the function uses an array from outside it",
            where=describe(here()),
            fix="use only its two arguments and constants, or write the loop with tn.scan",
        )
    axes = axes_of(axis, scope.builder.types[array].rank)
    (value,) = scope.node("reduce", (array, start), {"axes": axes}, [folded.close(())])
    return Array(scope, value)
