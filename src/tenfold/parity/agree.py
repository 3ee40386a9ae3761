"""The rule of agreement: how far a compiled value may lie from the reference's.

Every value of the reference carries a bound on what a compiled value may differ by. An op adds its
own bound, scaled by its inputs' magnitudes, to what its inputs' bounds make of it, which is found
by trying: the reference is asked again with inputs moved by their bounds. So a discrete result may
differ exactly where its operands lie within their bounds of a tie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.errors import TenfoldError
from tenfold.frozen import frozen
from tenfold.graph import Graph, Node, Parameter
from tenfold.graph.op import Pointwise
from tenfold.ops import TABLE
from tenfold.reference import evaluate
from tenfold.types import KIND, SHORT, DType, TensorType

Array = np.ndarray[Any, Any]
Judged = tuple[Array, Array]  # a value and what it may be off by
Watch = Callable[[], None]

_EPS = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52, "c64": 2.0**-23,
        "c128": 2.0**-52}  # fmt: skip
_TINY = {"f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-149, "f64": 2.0**-1074, "c64": 2.0**-149,
         "c128": 2.0**-1074}  # fmt: skip
SLACK = 3.0  # bounds are first-order; errors of errors are not counted


class Uncertain(Exception):
    """The program takes another way within its bounds: nothing can be said of it."""


def judged(graph: Graph, arguments: Sequence[Array], watch: Watch | None = None) -> list[Judged]:
    """The outputs of a graph, each with its bound. `watch` is called before every node."""
    with np.errstate(all="ignore"):
        exact = [(np.asarray(a), np.zeros(np.shape(a))) for a in arguments]
        return _run(graph, exact, watch)


@frozen
class Agreement:
    """How a compiled value compares with the reference's.

    `ulp` is the largest error in units in the last place of the reference's value. `at` is the
    first element that is out of bounds, None where all are within. `ties` counts elements of a
    discrete value that differ because what they were decided by lies within its bound.
    """

    ulp: float
    at: tuple[int, ...] | None = None
    text: str = ""
    ties: int = 0
    nans: int = 0  # NaN on one side alone
    infinities: int = 0  # an infinity on one side alone

    @property
    def agrees(self) -> bool:
        return self.at is None


def same_bits(got: Array, value: Array) -> bool:
    """Whether two arrays are equal bit for bit."""
    return (
        got.dtype == value.dtype
        and got.shape == value.shape
        and np.array_equal(raw(got), raw(value))
    )


def raw(array: Array) -> Array:
    """The bytes of an array."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def compare(got: Array, value: Array, error: Array | None) -> Agreement:
    """A compiled value beside the reference's; `error` is what it may be off by, if it is known."""
    if got.dtype != value.dtype or got.shape != value.shape:
        wrong = f"{got.dtype}{list(got.shape)} instead of {value.dtype}{list(value.shape)}"
        return Agreement(np.inf, (), wrong)
    with np.errstate(all="ignore"):
        off = _distance(got, value)
        allowed = SLACK * (np.inf if error is None else error)
        bad = ~(off <= allowed)
        short = SHORT[np.dtype(value.dtype)]
        nans = infinities = ties = 0
        if short in _EPS:
            size = np.where(np.isfinite(_size(value)), _size(value), 0.0)
            exponent = np.exp2(np.floor(np.log2(np.where(size > 0, size, 1.0))))
            unit = np.where(
                size > 0, np.maximum(exponent * _EPS[short], _TINY[short]), _TINY[short]
            )
            ulp = float(np.max(off / unit, initial=0.0))
            nans = int(np.count_nonzero(np.isnan(got) != np.isnan(value)))
            infinities = int(np.count_nonzero(np.isinf(got) != np.isinf(value)))
        else:
            ulp = float(np.max(off, initial=0.0))
            ties = int(np.count_nonzero((off > 0) & ~bad)) if error is not None else 0
    if not bad.any():
        return Agreement(ulp, None, "", ties, nans, infinities)
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    bound = 0.0 if error is None else float(error[at])
    text = (
        f"{got[at]} instead of {value[at]} at {list(at)}: off by {off[at]:.3g}, bound {bound:.3g}"
    )
    return Agreement(ulp, at, text, ties, nans, infinities)


def disagreement(got: Array, judged: Judged) -> str | None:
    """What is wrong with a compiled value, or None."""
    found = compare(got, *judged)
    return None if found.agrees else found.text


def _run(graph: Graph, arguments: list[Judged], watch: Watch | None) -> list[Judged]:
    values: list[Any] = list(arguments)
    for node, dying in zip(graph.nodes, graph.last_uses, strict=True):
        if watch is not None:
            watch()
        values += _node(node, [values[v] for v in node.inputs], watch)
        for value in dying:
            values[value] = None
    return [values[v] for v in graph.outputs]


def _node(node: Node, inputs: list[Judged], watch: Watch | None) -> list[Judged]:
    if node.op == "switch":
        (index, error), *rest = inputs
        if error.any():
            raise Uncertain
        return _run(node.scopes[min(max(int(index), 0), len(node.scopes) - 1)], rest, watch)
    if node.op == "while":
        fixed, carries = inputs[: node["captures"]], inputs[node["captures"] :]
        while True:
            ((again, error),) = _run(node.scopes[0], [*fixed, *carries], watch)
            if error.any():
                raise Uncertain
            if not again:
                return carries
            carries = _run(node.scopes[1], [*fixed, *carries], watch)
    if node.op == "scan":
        return _scan(node, inputs, watch)
    if node.op == "custom":
        return _run(node.scopes[0], inputs, watch)
    return _plain(node, inputs)


def _scan(node: Node, inputs: list[Judged], watch: Watch | None) -> list[Judged]:
    first, count = node["captures"], node["carries"]
    fixed, carries, stacked = inputs[:first], inputs[first : first + count], inputs[first + count :]
    made: list[Any] = [(np.empty(t.shape, t.dtype), np.zeros(t.shape)) for t in node.types[count:]]
    turns = range(node["length"])
    for at in reversed(turns) if node["reverse"] else turns:
        slices = [(v[at], e[at]) for v, e in stacked]
        results = _run(node.scopes[0], [*fixed, *carries, *slices], watch)
        carries = results[:count]
        for (value, error), (v, e) in zip(made, results[count:], strict=True):
            value[at], error[at] = v, e
    return [*carries, *made]


def _plain(node: Node, inputs: list[Judged]) -> list[Judged]:
    values = [np.asarray(v) for v, _ in inputs]
    results = _call(node, values)
    errors = [np.zeros(r.shape) for r in results]
    random = np.random.default_rng(0)
    for i, (value, error) in enumerate(inputs):
        same = [n for n, v in enumerate(node.inputs) if v == node.inputs[i]]
        if not np.any(error) or same[0] != i:
            continue
        signs = np.where(random.random(value.shape) < 0.5, -1.0, 1.0)
        most = [np.zeros(r.shape) for r in results]
        # Where elements do not mix, moving all one way and then the other tells all.
        apart = isinstance(TABLE[node.op].lowering, Pointwise) and np.isfinite(error).all()
        for sign in (1.0, -1.0) if apart else (1.0, -1.0, signs, -signs):
            moved = [*values]
            for n in same:  # read twice, it is moved as one
                moved[n] = _moved(value, error, sign)
            try:
                others = _call(node, moved)
            except TenfoldError:
                others = [np.full_like(r, 0) for r in results]
                most = [np.full(r.shape, np.inf) for r in results]
            for n, (a, b) in enumerate(zip(others, results, strict=True)):
                most[n] = np.maximum(most[n], _distance(a, b))
        errors = [e + m for e, m in zip(errors, most, strict=True)]
    if any(np.isinf(e).any() for _, e in inputs):  # several may be anything at once
        for sign in (1.0, -1.0):
            try:
                others = _call(node, [_moved(v, e, sign) for v, e in inputs])
            except TenfoldError:
                continue
            errors = [
                np.maximum(e, _distance(a, b))
                for e, a, b in zip(errors, others, results, strict=True)
            ]
    own = [_own(node, values, r) for r in results]
    return [(r, _finite(e + o)) for r, e, o in zip(results, errors, own, strict=True)]


def _finite(error: Array) -> Array:
    return np.where(np.isnan(error), np.inf, error)


def _call(node: Node, values: list[Array]) -> list[Array]:
    row = TABLE[node.op]
    if row.scopes == 0 and not row.effect:
        result = row.reference(*values, **dict(node.attributes))
        return [np.asarray(r) for r in (result if isinstance(result, tuple) else (result,))]
    count = len(values)
    one = Node(node.op, tuple(range(count)), node.attributes, node.scopes, node.types)
    parameters = tuple(Parameter(TensorType(v.dtype, v.shape)) for v in values)
    outputs = tuple(range(count, count + len(node.types)))
    return evaluate(Graph(parameters, (one,), outputs), values)


def _moved(value: Array, error: Array, sign: Any) -> Array:
    """The value moved by its bound."""
    kind = KIND[value.dtype]
    if kind == "b":
        return np.where((error > 0) & np.broadcast_to(sign > 0, value.shape), ~value, value)
    if kind in "iu":
        limits = np.iinfo(value.dtype)
        shift = np.clip(error * sign, -(2.0**62), 2.0**62).astype(np.int64)
        wide = value.astype(np.float64) + error * sign
        moved = value + shift.astype(value.dtype)
        moved = np.where(wide >= float(limits.max), limits.max, moved)
        return np.where(wide <= float(limits.min), limits.min, moved).astype(value.dtype)
    if kind == "c":
        made = np.empty(value.shape, value.dtype)
        made.real, made.imag = (_moved(p, error, sign) for p in (value.real, value.imag))
        return made
    moved = (value.astype(np.float64) + error * sign).astype(value.dtype)
    if np.ndim(sign):
        anything = np.broadcast_to(sign * np.inf, value.shape).astype(value.dtype)
    else:
        anything = np.full(value.shape, 0.0 if sign > 0 else np.nan).astype(value.dtype)
    moved = np.where(np.isinf(error), anything, moved)
    return np.where(error > 0, moved, value).astype(value.dtype)


def _distance(a: Array, b: Array) -> Array:
    """How far apart two values are; 0 for equal ones and for two NaN."""
    kind = KIND[b.dtype]
    if kind == "b":
        return np.asarray(a != b, np.float64)
    if kind in "iu":
        far = np.abs(a.astype(np.float64) - b.astype(np.float64))
        return np.where(a == b, 0.0, np.maximum(far, 1.0))
    if kind == "c":
        return np.maximum(_distance(a.real, b.real), _distance(a.imag, b.imag))
    x, y = a.astype(np.float64), b.astype(np.float64)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    far = np.abs(x - y)
    return np.where(same, 0.0, np.where(np.isnan(far), np.inf, far))


def _own(node: Node, values: list[Array], result: Array) -> Array:
    """What the op itself may be off by."""
    short = SHORT[np.dtype(result.dtype)]
    if node.op in ("signbit", "copysign"):  # NaN has no sign that anyone promises
        nan = np.broadcast_to(np.isnan(values[-1]), result.shape)
        return np.where(nan, np.inf, 0.0)
    if short not in _EPS:
        return np.zeros(result.shape)
    bound = TABLE[node.op].bound + (4 if short[0] == "c" else 1)
    size = _size(result)
    if node.op in _SUMS:
        count = max(max((v.size for v in values), default=1) // max(result.size, 1), 2)
        bound = (bound + 1) * (np.log2(count) + 1)
        if node.op == "reduce_prod":
            return _product_bound(node, values[0], bound * count * _EPS[short], size)
        whole = _size(_call(node, [_absolute(v) for v in values])[0])
        if short[0] == "c":
            whole = np.where(np.isfinite(result), whole, np.inf)
        # Where the sum of magnitudes overflows, so may a partial sum, in one order or another.
        return np.asarray(bound * _EPS[short] * whole + 4 * _TINY[short])
    if node.op in _EXACT and not (node.op == "abs" and KIND[values[0].dtype] == "c"):
        return np.zeros(result.shape)
    if short[0] == "c" and node.op not in ("add", "sub", "cast"):
        # Infinities in complex products and quotients come out in many ways.
        size = np.where(np.isfinite(result), size, np.inf)
    else:
        size = np.where(np.isfinite(size), size, 0.0)
    return np.asarray(bound * _EPS[short] * size + 4 * _TINY[short])


def _product_bound(node: Node, value: Array, bound: float, size: Array) -> Array:
    """Of a product, whose parts may overflow or vanish in one order and not in another."""
    logs = np.abs(np.log2(np.abs(value.astype(np.complex128))))
    axes = node["axes"]
    reach = np.sum(np.where(value == 0, 0.0, logs), axis=axes)
    limit = float(np.log2(float(np.finfo(np.float32).max))) / 2
    safe = np.asarray(reach < limit) | ~np.asarray(np.any(value == 0, axis=axes) | (reach >= limit))
    return np.where(safe, bound * np.where(np.isfinite(size), size, 0.0) + 1e-300, np.inf)


_SUMS = ("reduce_sum", "contract", "reduce_prod", "conv", "cumsum")

_NAMES = """
    neg abs floor ceil trunc round max min fmax fmin select reshape transpose broadcast slice
    reverse pad concatenate gather dynamic_slice dynamic_update reduce_max reduce_min bitcast
    sort constant iota real imag conj complex
"""
_EXACT = frozenset(_NAMES.split())


def _absolute(value: Array) -> Array:
    dtype: DType = value.dtype
    return np.abs(value).astype(dtype)


def _size(value: Array) -> Array:
    if KIND[value.dtype] == "c":
        parts = [np.where(np.isfinite(p), np.abs(p), 0.0) for p in (value.real, value.imag)]
        return np.asarray(parts[0] + parts[1])
    return np.abs(value.astype(np.float64))
