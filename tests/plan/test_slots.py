"""Memory of plans: lifetimes, reuse, in place, the greatest live set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.plan import CopyStep, KernelStep
from tenfold.plan.steps.slots import ALIGN, Request, greatest_live, lay_out


def some(*shape: int) -> np.ndarray[Any, Any]:
    return np.ones(shape, "f4")


def layers(depth: int) -> Any:
    def function(x: Any, w: Any) -> Any:
        for _ in range(depth):
            x = np.tanh(x @ w) * 2 + x
        return x

    return function


def test_peak_is_near_the_greatest_live_set() -> None:
    for depth in (1, 3, 10, 40, 150):
        plan = BACKEND.plan(tn.trace(layers(depth), some(128, 128), some(128, 128)))
        assert plan.peak_bytes <= 1.1 * plan.greatest_live
        assert plan.peak_bytes < 4 * 128 * 128 * 4


@pytest.mark.parametrize("steps", [2, 4, 9, 30, 100])
def test_peak_of_a_rollout(steps: int) -> None:
    """Lifetimes interlock here, so that placing one after another wastes a sixth."""

    def function(x: Any, w: Any, v: Any) -> Any:
        found = []
        for _ in range(steps):
            h = np.tanh(np.concatenate([x, x * 0.5], -1) @ w)
            p = np.exp(h @ v)
            x = np.where(p > 0.1, x * 0.9, x + p / p.sum(-1, keepdims=True))
            found.append(p.max())
        return x, np.stack(found)

    plan = BACKEND.plan(tn.trace(function, some(32, 24), some(48, 64), some(64, 24)))
    assert plan.peak_bytes <= 1.1 * plan.greatest_live


def test_peak_of_mixed_sizes() -> None:
    def function(x: Any, w: Any) -> Any:
        total = 0
        for n in range(12):
            h = np.tanh(x[: 10 * n + 20] @ w)
            total = total + (np.sort(h) @ w).sum()
        return total

    plan = BACKEND.plan(tn.trace(function, some(200, 64), some(64, 64)))
    assert plan.peak_bytes <= 1.1 * plan.greatest_live + 64 * 8


def test_elementwise_work_is_done_in_place() -> None:
    plan = BACKEND.plan(tn.trace(lambda x, w: np.tanh(x @ w + 1) @ w, some(64, 64), some(64, 64)))
    product, between, _ = plan.steps
    assert isinstance(between, KernelStep)
    (made,) = product.outputs  # type: ignore[union-attr]
    read, written = (plan.slots[s] for s in between.slots)
    assert plan.slots[made].offset == read.offset == written.offset
    assert plan.peak_bytes <= 64 * 64 * 4 + 192


def test_donated_inputs_are_used() -> None:
    graph = tn.trace(lambda x, w: np.tanh(x + 1) @ w, some(64, 64), some(64, 64))
    assert BACKEND.plan(graph).peak_bytes >= 64 * 64 * 4
    plan = BACKEND.plan(graph, donated=[0])
    assert plan.peak_bytes == 0
    from tenfold.backends.cpu.run.compiled import CompiledProgram
    from tenfold.reference import evaluate

    x, w = some(64, 64) * 0.5, some(64, 64) * 0.1
    (wanted,) = evaluate(graph, [x, w])
    (got,) = CompiledProgram(plan)([x.copy(), w])
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_loops_work_in_place_where_that_is_safe() -> None:
    x = some(9000)

    def updates(i: Any, c: Any) -> Any:
        return tn.dynamic_update(c, tn.dynamic_slice(c, (i,), (3,)) + 1, (i,))

    for body, least in (
        (lambda i, c: c * 0.5 + 1, 0),
        (updates, 0),
        (lambda i, c: c[::-1] + 1, x.nbytes),  # reads elsewhere than it writes
    ):
        graph = tn.trace(lambda x, body=body: tn.fori_loop(0, 7, body, x), x)
        plan = BACKEND.plan(graph)
        assert (plan.peak_bytes >= x.nbytes) == (least > 0)
        from tenfold.backends.cpu.run.compiled import CompiledProgram
        from tenfold.reference import evaluate

        np.testing.assert_array_equal(CompiledProgram(plan)([x])[0], evaluate(graph, [x])[0])


def test_what_is_handed_out_is_made_in_place() -> None:
    plan = BACKEND.plan(tn.trace(lambda x: (x * 2, (x * 2).reshape(6, 4)), some(4, 6)))
    copies = [step for step in plan.steps if isinstance(step, CopyStep)]
    assert len(copies) == 1  # the second shares the first's value, so it is copied
    assert plan.peak_bytes == 0


def test_bytes_a_node() -> None:
    """A plan in memory is bounded by its graph."""
    import sys

    def size(item: Any, seen: set[int]) -> int:
        total, stack = 0, [item]
        while stack:
            one = stack.pop()
            if id(one) in seen or isinstance(one, (type, np.dtype)):
                continue
            seen.add(id(one))
            total += sys.getsizeof(one)
            if isinstance(one, (tuple, list, frozenset, set)):
                stack += list(one)
            elif isinstance(one, dict):
                stack += [*one, *one.values()]
            elif hasattr(one, "__dataclass_fields__"):
                stack += [getattr(one, f) for f in one.__dataclass_fields__]
        return total

    graph = tn.trace(layers(300), some(64, 64), some(64, 64))
    plan = BACKEND.plan(graph)
    seen: set[int] = set()
    size(plan.graph, seen)
    assert size(plan, seen) / len(graph.nodes) < 800


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
@given(
    st.lists(st.tuples(st.integers(0, 20000), st.integers(0, 30), st.integers(0, 10)), max_size=40)
)
def test_what_overlaps_in_time_does_not_in_memory(drawn: list[tuple[int, int, int]]) -> None:
    requests = [Request(size, first, first + length) for size, first, length in drawn]
    offsets, total = lay_out(requests)
    for i, (r, at) in enumerate(zip(requests, offsets, strict=True)):
        assert at % ALIGN == 0
        assert at + r.bytes <= total
        for other, place in zip(requests[:i], offsets[:i], strict=True):
            if r.first <= other.last and other.first <= r.last and r.bytes and other.bytes:
                assert at + r.bytes <= place or place + other.bytes <= at
    assert total >= greatest_live(requests)


def test_many_requests_take_the_fast_way() -> None:
    requests = [Request(64 * (n % 7 + 1), n, n + 2) for n in range(2000)]
    offsets, total = lay_out(requests)
    assert total <= 1.3 * greatest_live(requests)
    assert len(offsets) == 2000


def test_what_dies_when_it_is_handed_out_is_made_there() -> None:
    """A value that an output begins as, and what that was made of in place, need no arena."""

    def function(x: Any, i: Any) -> Any:
        y = x @ x * 2
        y[i] = 1.0
        return y

    x, i = some(80, 80), np.arange(3)
    plan = BACKEND.plan(tn.trace(function, x, i))
    assert [s.kind for s in plan.steps] == ["routine", "kernel", "copy", "kernel"]
    assert plan.peak_bytes == 0
    np.testing.assert_array_equal(CompiledProgram(plan)([x, i])[0], function(x, i))


def test_a_carry_is_read_before_what_is_made_in_its_place() -> None:
    """A value that is made where an output is handed out has that memory before the output: an
    input that is read after it may not share it."""

    def body(carry: Any, k: Any, w: Any) -> Any:
        y, x = carry
        new = np.tanh(x @ w) * k + y
        mean = np.exp(-y * y) + new.mean(axis=-1, keepdims=True)
        x = new - new.max(axis=0)
        return (np.where(mean > 0, mean, 0.1 * x), x), None

    def rounds(y: Any, x: Any, w: Any) -> Any:
        return tn.scan(lambda carry, k: body(carry, k, w), (y, x), np.linspace(0.3, 2.0, 8))[0]

    draw = np.random.default_rng(0)
    arrays = [draw.standard_normal(shape) for shape in ((30, 12), (30, 12), (12, 12))]
    wanted = tn.jit(rounds, compile="never")(*arrays)
    for got, one in zip(tn.jit(rounds, verify="off")(*arrays), wanted, strict=True):
        np.testing.assert_allclose(got, one, rtol=1e-6, atol=1e-6)
