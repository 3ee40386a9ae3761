"""The rule of agreement: how far a compiled value may lie from the reference's.

Every value of the reference carries a bound on what a compiled value may differ by. An op adds its
own bound (`bounds`) to what its inputs' bounds make of it, which is found by trying: the
reference is asked again with inputs moved by their bounds. So a discrete result may differ exactly
where its operands lie within their bounds of a tie, and on inputs that are right an op that is
exact or correctly rounded must give the very bits, the signs of zeros too. Two NaN agree, whatever
their bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenfold.errors import TenfoldError
from tenfold.frozen import frozen
from tenfold.graph import Graph, Node, Parameter
from tenfold.graph.op import Branch, Composition, Element, Inline, Loop, Pointwise, Routine
from tenfold.ops import TABLE
from tenfold.ops.agreement.moved import distance, moved, outwards, snapped
from tenfold.ops.agreement.units import EPS, SIGN, finite_size, unit
from tenfold.parity.rule.bits import same_bits
from tenfold.parity.rule.bounds import own_bound, settled_spread, spread_of, unrounded
from tenfold.parity.rule.flushed import flushed_inputs, flushed_result
from tenfold.reference import evaluate
from tenfold.types import KIND, SHORT, TensorType

Array = np.ndarray[Any, Any]
Watch = Callable[[], None]

# What needs no bound where kernels are known: units of the largest element, and how much of it.
CLOSE, FARTHEST = 64.0, 2.0**-7
SLACK = 3.0  # what inputs' bounds make is tried at a few points, to first order


class BoundedValue(NamedTuple):
    """A value of the reference. `error` is what it may be off by inside a kernel, where a product
    may go unrounded into a sum; `allowed` is what it may be off by where it is stored."""

    value: Array
    error: Array
    allowed: Array


class Uncertain(Exception):
    """The program takes another way within its bounds: nothing can be said of it."""


def judged(
    graph: Graph, arguments: Sequence[Array], watch: Watch | None = None
) -> list[BoundedValue]:
    """The outputs of a graph, each with its bound. `watch` is called before every node."""
    with np.errstate(all="ignore"):
        given = [np.asarray(a) for a in arguments]
        exact = [BoundedValue(a, np.zeros(a.shape), np.zeros(a.shape)) for a in given]
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


def closely(got: Array, value: Array, steps: int = 1) -> float | None:
    """The largest error of a compiled value in units of its largest element, where that is but a
    few for each step on the way: no bound is asked for that. None where it has to be looked at
    closer: integers that are not equal, too."""
    if got.dtype != value.dtype or got.shape != value.shape:
        return None
    short = SHORT[value.dtype]
    if short not in EPS or not value.size:
        return 0.0 if np.array_equal(got, value) else None
    with np.errstate(all="ignore"):
        off, largest = float(np.abs(got - value).max()), float(np.abs(value).max())
        if not (off < np.inf and largest < np.inf):
            off, largest = distance(got, value).max(), finite_size(value).max()
    if off == 0.0:
        return 0.0
    if not off <= min(CLOSE * EPS[short] * steps, FARTHEST) * largest:
        return None
    return float(off / (EPS[short] * largest))


def compare(got: Array, value: Array, allowed: Array | None) -> Agreement:
    """A compiled value beside the reference's; `allowed` is what it may be off by, if that is to be
    judged."""
    if got.dtype != value.dtype or got.shape != value.shape:
        wrong = f"{got.dtype}{list(got.shape)} instead of {value.dtype}{list(value.shape)}"
        return Agreement(np.inf, (), wrong)
    if same_bits(got, value):
        return Agreement(0.0)
    with np.errstate(all="ignore"):
        off = distance(got, value)
        bad = np.zeros(off.shape, bool) if allowed is None else ~(off <= allowed)
        nans = infinities = ties = 0
        if SHORT[np.dtype(value.dtype)] in EPS:
            ulp = float(np.max(off / unit(value), initial=0.0))
            nans = int(np.count_nonzero(np.isnan(got) != np.isnan(value)))
            infinities = int(np.count_nonzero(np.isinf(got) != np.isinf(value)))
        else:
            ulp = float(np.max(off, initial=0.0))
            ties = int(np.count_nonzero((off > 0) & ~bad)) if allowed is not None else 0
    if allowed is None or not bad.any():
        return Agreement(ulp, None, "", ties, nans, infinities)
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    text = f"{got[at]} instead of {value[at]} at {list(at)}"
    text += f": off by {off[at]:.3g}, bound {float(allowed[at]):.3g}"
    return Agreement(ulp, at, text, ties, nans, infinities)


def disagreement(got: Array, judged: BoundedValue) -> str | None:
    """What is wrong with a compiled value, or None."""
    found = compare(got, judged.value, judged.allowed)
    return None if found.agrees else found.text


def _run(graph: Graph, arguments: list[BoundedValue], watch: Watch | None) -> list[BoundedValue]:
    values: list[Any] = list(arguments)
    for node, dying in zip(graph.nodes, graph.last_uses, strict=True):
        if watch is not None:
            watch()
        values += _node(node, [values[v] for v in node.inputs], watch)
        for value in dying:
            values[value] = None
    return [values[v] for v in graph.outputs]


def _node(node: Node, inputs: list[BoundedValue], watch: Watch | None) -> list[BoundedValue]:
    lowering = TABLE[node.op].lowering
    if isinstance(lowering, Branch):
        index, *rest = inputs
        if index.error.any():
            raise Uncertain
        taken = min(max(int(index.value), 0), len(node.scopes) - 1)
        return _run(node.scopes[taken], rest, watch)
    if isinstance(lowering, Loop) and lowering.counted:
        return _counted(node, lowering, inputs, watch)
    if isinstance(lowering, Loop):
        fixed, carries = inputs[: node["captures"]], inputs[node["captures"] :]
        while True:
            (again,) = _run(node.scopes[0], [*fixed, *carries], watch)
            if again.error.any():
                raise Uncertain
            if not again.value:
                return carries
            carries = _run(node.scopes[1], [*fixed, *carries], watch)
    if isinstance(lowering, Inline):
        return _run(node.scopes[0], inputs, watch)
    return _elementary(node, inputs)


def _counted(
    node: Node, loop: Loop, inputs: list[BoundedValue], watch: Watch | None
) -> list[BoundedValue]:
    carried = loop.carries(node)
    count = len(carried)
    fixed, stacked = inputs[: carried.start], inputs[carried.stop :]
    carries = inputs[carried.start : carried.stop]
    made = [
        BoundedValue(np.empty(t.shape, t.dtype), np.zeros(t.shape), np.zeros(t.shape))
        for t in node.types[count:]
    ]
    turns = range(node["length"])
    for at in reversed(turns) if loop.reversed(node) else turns:
        slices = [BoundedValue(*(part[at] for part in one)) for one in stacked]
        results = _run(node.scopes[0], [*fixed, *carries, *slices], watch)
        # Whatever is carried is stored between rounds.
        carries = [BoundedValue(v, np.minimum(e, a), a) for v, e, a in results[:count]]
        for whole, one in zip(made, results[count:], strict=True):
            for into, part in zip(whole, one, strict=True):
                into[at] = part
    return [*carries, *made]


def _elementary(node: Node, inputs: list[BoundedValue]) -> list[BoundedValue]:
    values = [np.asarray(one.value) for one in inputs]
    errors = flushed_inputs(node, values, [one.error for one in inputs])
    results = _call(node, values)
    spread = _spread(node, values, errors, results)
    made = []
    for result, far in zip(results, spread, strict=True):
        own = own_bound(node, values, errors, result, _call)
        own = own + flushed_result(node, values, result, far)
        error = _finite(far + np.maximum(own, unrounded(node, values, result, _call)))
        allowed = _finite(_slack(result, far) + own)
        made.append(BoundedValue(result, error, allowed))
    return made


def _slack(result: Array, far: Array) -> Array:
    """What was found by a few trials, and some more; a tie next to one value is found exactly."""
    if KIND[result.dtype] in "biu":
        return np.where(far > 1, SLACK * far, far)
    return np.where(far > SIGN, SLACK * far, far)


def _spread(
    node: Node, values: list[Array], errors: list[Array], results: list[Array]
) -> list[Array]:
    """What the bounds of the inputs make of the results."""
    spread = [np.zeros(r.shape) for r in results]
    if not any(e.any() for e in errors):
        return spread
    row, known = TABLE[node.op], spread_of(node.op)
    found = settled_spread(node, values, errors, results, _call)
    if found is not None:
        return found
    range_of = {"f": known.range, "c": np.inf if known.turns else None}.get(KIND[values[0].dtype])
    if range_of is not None:
        # Moved by half a period and more, it may be anything in its range.
        wide = np.broadcast_to(errors[0], results[0].shape) > 1.0
        spread = [np.where(wide, range_of, 0.0)]
    unbounded = any(np.isinf(e).any() for e in errors)
    if _wanders(node, errors) or (unbounded and _mixes(node)):
        return [np.full(r.shape, np.inf) for r in results]
    random = np.random.default_rng(0)
    for i, (value, error) in enumerate(zip(values, errors, strict=True)):
        same = [n for n, v in enumerate(node.inputs) if v == node.inputs[i]]
        if same[0] != i or not np.any(error):
            continue
        signs = np.where(random.random(value.shape) < 0.5, -1.0, 1.0)
        most = [np.zeros(r.shape) for r in results]
        # Where elements do not mix, moving all one way and then the other tells all but poles.
        apart = isinstance(row.lowering, Pointwise) and np.isfinite(error).all()
        ways: tuple[Any, ...] = (1.0, -1.0)
        if not apart:  # the factors of a product are all off most if none makes up for another
            away = outwards(value)
            ways = (*ways, signs, -signs, away, -away)
        if KIND[value.dtype] == "c":  # of a modulus, say, one way may tell nothing
            ways = (*ways, 1.0 - 1.0j, -1.0 + 1.0j)
        trials = [moved(value, error, way) for way in ways]
        for trial in (*trials, *snapped(value, error)):
            tried = [*values]
            for n in same:  # read twice, it is moved as one
                tried[n] = trial
            for n, far in enumerate(_farther(node, tried, results)):
                most[n] = np.maximum(most[n], far)
        spread = [e + m for e, m in zip(spread, most, strict=True)]
    if known.together and all(np.any(e) for e in errors):
        # A base that may be negative has no power that may be none of an integer's.
        for up, down in ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)):
            pairs = zip(values, errors, (up, down), strict=True)
            found = _farther(node, [moved(v, e, sign) for v, e, sign in pairs], results)
            spread = [np.maximum(e, far) for e, far in zip(spread, found, strict=True)]
    if unbounded:  # several may be anything at once
        for sign in (1.0, -1.0):
            tried = [moved(v, e, sign) for v, e in zip(values, errors, strict=True)]
            found = _farther(node, tried, results)
            spread = [np.maximum(e, far) for e, far in zip(spread, found, strict=True)]
        if isinstance(row.lowering, Pointwise):  # no few trials tell of two at once
            anything = [np.isinf(np.broadcast_to(e, results[0].shape)) for e in errors]
            spread = [np.where(np.any(anything, axis=0), np.inf, far) for far in spread]
    return spread


def _farther(node: Node, tried: list[Array], results: list[Array]) -> list[Array]:
    """How far the results on moved inputs lie from the results."""
    try:
        others = _call(node, tried)
    except TenfoldError:  # an index out of range, a power that is not there
        return [np.full(r.shape, np.inf) for r in results]
    return [distance(a, b, signs=True) for a, b in zip(others, results, strict=True)]


def _wanders(node: Node, errors: list[Array]) -> bool:
    """Whether an index may be off by more than one: what lies at places between is not tried."""
    first = TABLE[node.op].indices
    return first is not None and any((e > 1).any() for e in errors[first:])


def _mixes(node: Node) -> bool:
    """Whether one element that may be anything can reach every result, so that no number of trials
    tells which."""
    row = TABLE[node.op]
    if isinstance(row.lowering, (Routine, Composition)) or row.scopes != 0:
        return True
    return isinstance(row.lowering, Element) and row.lowering.mixes


def _finite(error: Array) -> Array:
    return np.where(np.isnan(error), np.inf, error)


def _call(node: Node, values: Sequence[Array]) -> list[Array]:
    row = TABLE[node.op]
    if row.scopes == 0 and not row.effect:
        result = row.reference(*values, **dict(node.attributes))
        return [np.asarray(r) for r in (result if isinstance(result, tuple) else (result,))]
    count = len(values)
    one = Node(node.op, tuple(range(count)), node.attributes, node.scopes, node.types)
    parameters = tuple(Parameter(TensorType(v.dtype, v.shape)) for v in values)
    outputs = tuple(range(count, count + len(node.types)))
    return evaluate(Graph(parameters, (one,), outputs), list(values))
