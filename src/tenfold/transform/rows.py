"""Rows: whether a program treats the rows of an axis apart from each other.

`follow` goes through a graph once and tells for each value which of its axes, if any, is the axis
of rows. An op that mixes rows (a sum over them, a sort along them, a reshape that folds them into
another axis) is found by name. Padding the axis is neutral exactly where nothing mixes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tenfold.errors import ValueProblem
from tenfold.graph import Graph, Node
from tenfold.graph.op import Composition, Pointwise
from tenfold.ops import TABLE
from tenfold.types import TensorType

# For each input the axis of rows or None; gives those of the outputs, or says what mixes.
Rows = tuple[int | None, ...]
Rule = Callable[[Node, Sequence[TensorType], Rows], Rows | str]


def follow(graph: Graph, rows: Sequence[int | None]) -> Rows:
    """The axis of rows of each output, for those of the parameters; ValueProblem where rows mix."""
    found: list[int | None] = list(rows)
    for node in graph.nodes:
        own = tuple(found[v] for v in node.inputs)
        types = [graph.types[v] for v in node.inputs]
        if all(axis is None for axis in own) and node.op != "iota":
            found.extend([None] * len(node.types))
            continue
        answer = _apply(node, types, own)
        if isinstance(answer, str):
            raise ValueProblem(
                f"{node.op} {answer}, so padding would change its result",
                where=str(node.source) if node.source else None,
                fix="leave this argument out of buckets, or make the op work row by row",
            )
        found.extend(answer)
    return tuple(found[v] for v in graph.outputs)


def _apply(node: Node, types: Sequence[TensorType], own: Rows) -> Rows | str:
    row = TABLE[node.op]
    if row.effect:
        return "shows whole arrays to the host"
    rule = _RULES.get(node.op)
    if rule is not None:
        return rule(node, types, own)
    if isinstance(row.lowering, (Pointwise, Composition)) or node.op in _ELEMENTWISE:
        return _elementwise(node, types, own)
    return "is not known to keep rows apart"


_ELEMENTWISE = {"select", "pow", "clip", "cast", "bitcast"}


def _elementwise(node: Node, types: Sequence[TensorType], own: Rows) -> Rows | str:
    rank = node.types[0].rank
    places = {rank - t.rank + a for t, a in zip(types, own, strict=True) if a is not None}
    if len(places) != 1:
        return "meets rows along different axes"
    (place,) = places
    for type, axis in zip(types, own, strict=True):
        at = place - (rank - type.rank)
        if axis is None and at >= 0 and type.shape[at] != 1:
            return "joins rows with an array of a fixed number of rows"
    return (place,) * len(node.types)


def _reduction(node: Node, types: Sequence[TensorType], own: Rows) -> Rows | str:
    axis = own[0]
    if axis is None:
        return "starts from rows"
    axes = node["axes"]
    if axis in axes:
        return "reduces over the rows"
    return (axis - sum(a < axis for a in axes),)


def _along(node: Node, types: Sequence[TensorType], own: Rows) -> Rows | str:
    """Ops along one axis that keep the shape."""
    axis = own[0]
    return "works along the rows" if axis == node["axis"] else (axis,) * len(node.types)


def _position(node: Node, types: Sequence[TensorType], own: Rows) -> Rows | str:
    """argmax and argmin: the axis goes."""
    axis = own[0]
    assert axis is not None
    return "works along the rows" if axis == node["axis"] else (axis - (node["axis"] < axis),)


def _reshape(node: Node, types: Sequence[TensorType], own: Rows) -> Rows | str:
    axis = own[0]
    assert axis is not None
    before, extent = _product(types[0].shape[:axis]), types[0].shape[axis]
    at = 1
    for place, size in enumerate(node["shape"]):
        if at == before and size == extent:
            return (place,)
        at *= size
    return "folds the rows into another axis"


def _product(extents: Sequence[int]) -> int:
    size = 1
    for extent in extents:
        size *= extent
    return size


def _transpose(node: Node, types: Sequence[TensorType], own: Rows) -> Rows | str:
    return (node["axes"].index(own[0]),)


def _broadcast(node: Node, types: Sequence[TensorType], own: Rows) -> Rows | str:
    axis = own[0]
    assert axis is not None
    place = node.types[0].rank - types[0].rank + axis
    if node.types[0].shape[place] != types[0].shape[axis]:
        return "spreads one row over many"
    return (place,)


def _slice(node: Node, types: Sequence[TensorType], own: Rows) -> Rows | str:
    axis = own[0]
    assert axis is not None
    whole = (0, types[0].shape[axis], 1)
    cut = (node["starts"][axis], node["stops"][axis], node["steps"][axis])
    return (axis,) if cut == whole else "takes some of the rows"


def _pad(node: Node, types: Sequence[TensorType], own: Rows) -> Rows | str:
    axis = own[0]
    if axis is None or own[1] is not None:
        return "pads with rows"
    changed = node["low"][axis] or node["high"][axis] or node["interior"][axis]
    return "pads the rows" if changed else (axis,)


def _reverse(node: Node, types: Sequence[TensorType], own: Rows) -> Rows | str:
    return "turns the rows round" if own[0] in node["axes"] else (own[0],)


def _concatenate(node: Node, types: Sequence[TensorType], own: Rows) -> Rows | str:
    if len(set(own)) != 1:
        return "joins rows with an array of a fixed number of rows"
    return "joins along the rows" if own[0] == node["axis"] else (own[0],)


def _gather(node: Node, types: Sequence[TensorType], own: Rows) -> Rows | str:
    source, indices = own[0], own[1:]
    axes, at = node["axes"], node["at"]
    rank = max((t.rank for t in types[1:]), default=0)
    chosen = {rank - t.rank + a for t, a in zip(types[1:], indices, strict=True) if a is not None}
    if source is not None:
        if source in axes or chosen:
            return "picks among the rows"
        place = source - sum(a < source for a in axes)
        return (place + (rank if place >= at else 0),)
    if len(chosen) != 1:
        return "meets rows along different axes"
    return (at + chosen.pop(),)


def _contract(node: Node, types: Sequence[TensorType], own: Rows) -> Rows | str:
    left, right = own
    sides = (("lhs", left, types[0]), ("rhs", right, types[1]))
    batch = len(node["lhs_batch"])
    places = []
    for number, (side, axis, type) in enumerate(sides):
        if axis is None:
            continue
        if axis in node[f"{side}_contract"]:
            return "sums over the rows"
        if axis in node[f"{side}_batch"]:
            places.append(node[f"{side}_batch"].index(axis))
            continue
        used = {*node[f"{side}_contract"], *node[f"{side}_batch"]}
        free = [a for a in range(type.rank) if a not in used]
        before = types[0].rank - len(node["lhs_contract"]) - batch if number else 0
        places.append(batch + before + free.index(axis))
    if len(set(places)) != 1 or (len(places) == 2 and places[0] >= batch):
        return "combines every row with every other"
    if len(places) == 1 and places[0] < batch:
        return "joins rows with an array of a fixed number of rows"
    return (places[0],)


def _switch(node: Node, types: Sequence[TensorType], own: Rows) -> Rows | str:
    if own[0] is not None:
        return "chooses by rows"
    answers = {follow(scope, own[1:]) for scope in node.scopes}
    return answers.pop() if len(answers) == 1 else "gives rows along different axes"


def _scan(node: Node, types: Sequence[TensorType], own: Rows) -> Rows | str:
    captures, carries = node["captures"], node["carries"]
    slices = own[captures + carries :]
    if 0 in slices:
        return "goes from row to row"
    inner = tuple(None if a is None else a - 1 for a in slices)
    state = own[captures : captures + carries]
    for _ in range(carries + 1):  # each round finds at least one more carry with rows
        answer = follow(node.scopes[0], (*own[:captures], *state, *inner))
        after = answer[:carries]
        joined = tuple(a if s is None else s for s, a in zip(state, after, strict=True))
        if joined == state:
            break
        state = joined
    if any(a != s for a, s in zip(after, state, strict=True) if a is not None):
        return "moves the rows to another axis"
    return (*state, *(None if a is None else a + 1 for a in answer[carries:]))


def _custom(node: Node, types: Sequence[TensorType], own: Rows) -> Rows | str:
    return follow(node.scopes[0], own)


_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(
        (
            "reduce_sum",
            "reduce_prod",
            "reduce_max",
            "reduce_min",
            "reduce_any",
            "reduce_all",
        ),
        _reduction,
    ),
    "argmax": _position,
    "argmin": _position,
    "sort": _along,
    "argsort": _along,
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "slice": _slice,
    "pad": _pad,
    "reverse": _reverse,
    "concatenate": _concatenate,
    "gather": _gather,
    "contract": _contract,
    "switch": _switch,
    "scan": _scan,
    "custom": _custom,
    "iota": lambda node, types, own: (None,),
}


def same_but_for_shapes(one: Graph, other: Graph) -> str | None:
    """What differs between two traces of a program at two sizes, beside shapes: None, or a node.

    A size that the program uses as a number (x / len(x)) shows as a constant that differs.
    """
    pairs: list[tuple[Graph, Graph]] = [(one, other)]
    for left, right in pairs:
        if len(left.nodes) != len(right.nodes):
            return f"{len(left.nodes)} nodes against {len(right.nodes)}"
        for a, b in zip(left.nodes, right.nodes, strict=True):
            if a.op != b.op or a.inputs != b.inputs or len(a.scopes) != len(b.scopes):
                return f"{a.op} against {b.op}"
            if a.op == "constant" and a.attributes != b.attributes:
                return f"a constant at {a.source}" if a.source else "a constant"
            pairs.extend(zip(a.scopes, b.scopes, strict=True))
    return None
