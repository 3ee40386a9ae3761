"""The evaluator drops a value at its last use: live bytes are counted at every node."""

from __future__ import annotations

import tracemalloc

import numpy as np

from tenfold.graph import Builder, Graph
from tenfold.ops import TABLE
from tenfold.reference import evaluate
from tenfold.types import BOOL, F64, I64, TensorType

MEGABYTE = 1 << 20
BIG = TensorType(F64, (MEGABYTE // 8,))
COUNT = TensorType(I64, ())


def chain(length: int) -> tuple[Builder, int, int]:
    builder = Builder(TABLE)
    first = value = builder.parameter(BIG)
    one = builder.node("constant", (), {"data": np.float64(1).tobytes(), "type": "f64"})[0]
    for _ in range(length):
        (value,) = builder.node("add", (value, one))
    return builder, first, value


def integer(builder: Builder, value: int) -> int:
    return builder.node("constant", (), {"data": np.int64(value).tobytes(), "type": "i64"})[0]


def peak(graph: Graph, *arguments: object) -> tuple[float, list[np.ndarray]]:
    """The most buffers of a megabyte that are alive at any node, arguments included."""
    given = list(arguments)
    most = 0

    def watch(*_: object) -> None:
        nonlocal most
        most = max(most, tracemalloc.get_traced_memory()[0] - before)

    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        outputs = evaluate(graph, given, watch=watch)
        highest = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert most <= highest
    held = sum(a.nbytes for a in given if isinstance(a, np.ndarray))
    return (highest + held) / MEGABYTE, outputs


def test_a_chain_holds_at_most_three_buffers() -> None:
    builder, _, last = chain(1000)
    graph = builder.finish([last])
    buffers, (result,) = peak(graph, np.zeros(BIG.shape))
    assert buffers < 3.5
    assert (result == 1000).all()


def test_a_chain_inside_while_inside_cond_inside_scan_holds_as_few() -> None:
    body, first, last = chain(1000)
    step = body.parameter(COUNT)
    (after,) = body.node("add", (step, integer(body, 1)))
    loop_body = body.finish([last, after], [first, step])
    test = Builder(TABLE)
    test.parameter(BIG)
    (go,) = test.node("lt", (test.parameter(COUNT), integer(test, 2)))
    loop_test = test.finish([go])

    branch = Builder(TABLE)
    x = branch.parameter(BIG)
    out = branch.node("while", (x, integer(branch, 0)), {"captures": 0}, (loop_test, loop_body))
    taken = branch.finish([out[0]])
    other = Builder(TABLE)
    not_taken = other.finish([other.parameter(BIG)])

    outer = Builder(TABLE)
    x = outer.parameter(BIG)
    yes = outer.node("constant", (), {"data": np.True_.tobytes(), "type": "bool"})[0]
    assert outer.types[yes].dtype == BOOL
    (x_out,) = outer.node("switch", (yes, x), {}, (not_taken, taken))
    scanned = outer.finish([x_out])

    top = Builder(TABLE)
    x = top.parameter(BIG)
    attributes = {"captures": 0, "carries": 1, "length": 3, "reverse": False, "unroll": 1}
    (result,) = top.node("scan", (x,), attributes, (scanned,))
    buffers, (value,) = peak(top.finish([result]), np.zeros(BIG.shape))
    assert buffers < 3.5
    assert (value == 6000).all()


def test_an_argument_nobody_reads_is_not_kept_in_a_scope() -> None:
    builder, first, last = chain(10)
    unread = builder.parameter(BIG)
    scope = builder.finish([last], [first, unread])
    outer = Builder(TABLE)
    x = outer.parameter(BIG)
    one = outer.node("constant", (), {"data": np.float64(1).tobytes(), "type": "f64"})[0]
    (y,) = outer.node("add", (x, one))
    (z,) = outer.node("add", (y, one))
    (made,) = outer.node("switch", (integer(outer, 0), y, z), {}, (scope,))
    buffers, _ = peak(outer.finish([made]), np.zeros(BIG.shape))
    assert buffers < 3.5


def test_what_a_scope_gave_dies_at_its_last_use_too() -> None:
    branch, _, last = chain(1)
    scope = branch.finish([last])
    outer = Builder(TABLE)
    (value,) = outer.node("switch", (integer(outer, 0), outer.parameter(BIG)), {}, (scope,))
    (one,) = outer.node("constant", (), {"data": np.float64(1).tobytes(), "type": "f64"})
    for _ in range(10):
        (value,) = outer.node("add", (value, one))
    buffers, _ = peak(outer.finish([value]), np.zeros(BIG.shape))
    assert buffers < 3.5
