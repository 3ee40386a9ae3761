"""How many kernels a program becomes, and that they give what the reference gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.plan import Plan
from tenfold.plan.fusion import values
from tenfold.plan.steps.plan import KernelStep
from tenfold.plan.steps.slots import ALIGN
from tenfold.reference import evaluate

Function = Callable[..., Any]
random = np.random.default_rng(3)


def some(*shape: int, dtype: str = "f4") -> np.ndarray[Any, Any]:
    return random.standard_normal(shape).astype(dtype)


def planned(function: Function, *args: Any) -> Plan:
    """The plan of a function, run and compared with the reference on the way."""
    graph = tn.trace(function, *args)
    plan = BACKEND.plan(graph)
    flat = [np.asarray(a) for a in args]
    for got, wanted in zip(CompiledProgram(plan)(flat), evaluate(graph, flat), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(
            got.astype("c16"), wanted.astype("c16"), rtol=2e-3, atol=2e-3, equal_nan=True
        )
    placed = sum(slot.place == "arena" for slot in plan.slots)
    assert plan.peak_bytes <= 1.1 * (plan.greatest_live + ALIGN * placed)
    return plan


def kinds(plan: Plan) -> Counter[str]:
    return Counter(step.kind for one in plan.every for step in one.steps)


def softmax(x: Any, axis: int = -1) -> Any:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def layernorm(x: Any) -> Any:
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) / np.sqrt(v + 1e-5)


def logsumexp(x: Any) -> Any:
    m = x.max(-1, keepdims=True)
    return (m + np.log(np.exp(x - m).sum(-1, keepdims=True)))[..., 0]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


SAFE: dict[str, Function] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "rsub": lambda a, b: b - a,
    "mul": lambda a, b: a * b * 0.5,
    "div": lambda a, b: a / (np.abs(b) + 1),
    "rdiv": lambda a, b: b / (np.abs(a) + 1),
    "pow": lambda a, b: np.minimum(np.abs(a), 3.0) ** 1.5,
    "max": np.maximum,
    "min": np.minimum,
    "exp": lambda a, b: np.exp(np.minimum(a, 1.0)),
    "log": lambda a, b: np.log(np.abs(a) + 1),
    "sqrt": lambda a, b: np.sqrt(np.abs(a)),
    "abs": lambda a, b: np.abs(a),
    "negate": lambda a, b: -a,
    "sigmoid": lambda a, b: sigmoid(a),
    "tanh": lambda a, b: np.tanh(a),
    "relu": lambda a, b: relu(a) - 0.1 * b,
    "ceil": lambda a, b: np.ceil(a) * 0.25 + b,
    "floor": lambda a, b: np.floor(a) * 0.25 + b,
    "sign": lambda a, b: np.sign(a) + b,
    "reciprocal": lambda a, b: np.reciprocal(np.abs(a) + 1),
    "square": lambda a, b: np.square(np.tanh(a)),
    "expm1": lambda a, b: np.expm1(np.minimum(a, 1.0)),
    "erf": lambda a, b: tn.erf(a) + 0.5 * b,
    "power of an array": lambda a, b: np.minimum(np.abs(a) + 0.5, 2.0) ** np.tanh(b),
}


def chain(length: int, inputs: int, right: bool, seed: int) -> Function:
    """A chain of this many links over these inputs, folded to the left or to the right."""
    drawn = np.random.default_rng(seed)
    names = list(SAFE)
    links = [SAFE[names[i]] for i in drawn.integers(0, len(names), length)]
    others = drawn.integers(0, inputs, length)

    def function(*xs: Any) -> Any:
        value = xs[0]
        for link, other in zip(links, others, strict=True):
            value = link(xs[other], value) if right else link(value, xs[other])
        return value

    return function


CHAINS = [
    (1, 1, False), (2, 2, True), (3, 3, False), (5, 1, True), (8, 4, False), (13, 7, True),
    (21, 2, False), (34, 40, True), (55, 5, False), (89, 20, True), (144, 8, False),
    (200, 3, True),
]  # fmt: skip


@pytest.mark.parametrize(("length", "inputs", "right"), CHAINS)
def test_a_chain_is_one_kernel(length: int, inputs: int, right: bool) -> None:
    arrays = [some(33) for _ in range(inputs)]
    plan = planned(chain(length, inputs, right, length), *arrays)
    assert kinds(plan) == {"kernel": 1}


@pytest.mark.parametrize(("length", "inputs", "right"), CHAINS[4:9])
def test_a_chain_of_many_shapes_and_dtypes_is_one_kernel(
    length: int, inputs: int, right: bool
) -> None:
    """Broadcast and mixed dtypes, a subexpression read again, several results."""
    shapes, dtypes = [(6, 1, 5), (1,), (4, 5), (6, 4, 5)], ["f4", "f8", "f4", "i4", "f2"]
    arrays = [
        (some(*shapes[n % 4]) * 3).astype(dtypes[n % 5]) if n else some(6, 4, 5)
        for n in range(inputs)
    ]
    first, second = chain(length, inputs, right, 1), chain(length // 2, inputs, not right, 2)

    def function(*xs: Any) -> Any:
        once = first(*xs) + xs[0]  # of the whole shape, whatever was drawn
        twice = second(once, *xs[1:]) + once
        return once, twice, twice - once * 0.5

    assert kinds(planned(function, *arrays)) == {"kernel": 1}


@pytest.mark.parametrize("name", SAFE)
def test_each_link_alone_is_one_kernel(name: str) -> None:
    plan = planned(SAFE[name], some(5, 7), some(7))
    assert kinds(plan) == {"kernel": 1}


def test_a_tree_over_many_inputs_is_one_kernel() -> None:
    def tree(*xs: Any) -> Any:
        level = [np.tanh(x) for x in xs]
        for _ in range(4):  # every sum reads every input, in another order
            level = [a * 0.5 + b for a, b in zip(level, level[1:] + level[:1], strict=True)]
        total = level[0]
        for x in level[1:]:
            total = total + x
        return total

    plan = planned(tree, *(some(20) for _ in range(40)))
    assert kinds(plan) == {"kernel": 1}


def test_too_many_inputs_are_split() -> None:
    def total(*xs: Any) -> Any:
        found = xs[0]
        for x in xs[1:]:
            found = found + x
        return found

    plan = planned(total, *(some(20) for _ in range(200)))
    assert 2 <= kinds(plan)["kernel"] <= 5
    assert all(len(kernel.buffers) <= 64 for kernel in plan.kernels)


def shared(x: Any) -> Any:
    for _ in range(30):
        x = np.tanh(x + x) * x
    return x


ONE: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "softmax": (softmax, (some(9, 40),)),
    "softmax of the first axis": (lambda x: softmax(x, 0), (some(9, 40),)),
    "softmax of a row": (softmax, (some(40),)),
    "layernorm": (layernorm, (some(9, 40),)),
    "logsumexp": (logsumexp, (some(9, 40),)),
    "variance": (lambda x: x.var(-1), (some(9, 40),)),
    "variance of all": (lambda x: x.var(), (some(9, 40),)),
    "standard deviation": (lambda x: x.std(0), (some(9, 40),)),
    "mean and variance": (lambda x: (x.mean(-1), x.var(-1)), (some(9, 40),)),
    "argmax with max": (lambda x: (x.argmax(-1), x.max(-1)), (some(9, 40),)),
    "a transpose in a chain": (lambda x, z: np.tanh(x).T * 2 + z, (some(9, 40), some(40, 9))),
    "a value and its transpose": (lambda x: x * 2 + x.T, (some(20, 20),)),
    "gather with mean": (
        lambda t, i: t[i].mean(1), (some(30, 8), random.integers(0, 30, (5, 6))),
    ),
    "gather, add, mean": (
        lambda t, i, p: (t[i] + p).mean(1),
        (some(30, 8), random.integers(0, 30, (5, 6)), some(6, 8)),
    ),
    "several outputs": (lambda x: (x + 1, x * 2, np.exp(x)), (some(50),)),
    "outputs along a chain": (lambda x: (x + 1, (x + 1) * 2, np.exp(x + 1)), (some(50),)),
    "shared values": (shared, (some(50) * 0.1,)),
    "broadcast": (lambda x, b, c: (x * b + c) / 2, (some(9, 40), some(40), some(9, 1))),
    "outer sum": (lambda a, b: np.tanh(a[:, None] + b[None, :]), (some(9), some(40))),
    "mixed dtypes": (
        lambda x, i, b: np.where(b, x * 2, i.astype("f8") + x), (
            some(50, dtype="f8"), random.integers(0, 9, 50), random.random(50) < 0.5,
        ),
    ),
    "half precision": (lambda x: np.exp(x) * x + 1, (some(50, dtype="f2"),)),
    "integers": (lambda i, j: (i * 3 + j) // 7 % 5, (
        random.integers(-99, 99, 50), random.integers(1, 99, 50),
    )),
    "concatenate, then a chain": (
        lambda x, y: np.concatenate([x, y * 2], 0) * 3 + 1, (some(9, 40), some(5, 40)),
    ),
    "stack and sum": (lambda x, y: np.stack([x, y], 0).sum(0), (some(9, 40), some(9, 40))),
    "rotate halves": (
        lambda x: np.concatenate([x[..., :8] * 2 - x[..., 8:], x[..., :8] + x[..., 8:]], -1),
        (some(9, 16),),
    ),
    "pad and stencil": (lambda x: (lambda p: p[:-2] + p[1:-1] + p[2:])(np.pad(x, 1)), (some(50),)),
    "stencil": (lambda x: x[2:] - 2 * x[1:-1] + x[:-2], (some(50),)),
    "reverse": (lambda x: x[::-1] * 2 + x, (some(50),)),
    "reshape in a chain": (lambda x: np.exp(x).reshape(10, 36) * 2, (some(9, 40),)),
    "head split": (
        lambda x: x.reshape(4, 5, 3, 8).transpose(0, 2, 1, 3) * 2, (some(4, 5, 24),),
    ),
    "norm of all": (lambda x: x / np.sqrt((x * x).sum()), (some(9, 40),)),
    "three reductions of a space": (
        lambda x: (x.sum(-1), np.abs(x).max(-1), (x * x).sum(-1)), (some(9, 40),),
    ),
    "log-softmax": (lambda x: x - logsumexp(x)[:, None], (some(9, 40),)),
    "cross entropy by row": (
        lambda x, y: -(y * (x - logsumexp(x)[:, None])).sum(-1), (some(9, 40), some(9, 40)),
    ),
    "gelu": (lambda x: 0.5 * x * (1 + np.tanh(0.8 * (x + 0.04 * x**3))), (some(50),)),
    "update of a slice": (lambda x: _updated(x), (some(50),)),
    "complex": (lambda z, w: z * w + np.conj(z) / w, (
        some(20).astype("c8"), (some(20) + 3).astype("c8"),
    )),
    "clip": (lambda x: np.clip(x, -0.5, 0.5) * 3, (some(50),)),
    "iota": (lambda x: x * tn.arange(50), (some(50),)),
}  # fmt: skip


def _updated(x: Any) -> Any:
    y = x * 1.0
    y[3:9] = 0
    return y


@pytest.mark.parametrize("name", ONE)
def test_one_kernel(name: str) -> None:
    function, args = ONE[name]
    plan = planned(function, *args)
    assert kinds(plan) == {"kernel": 1}, plan.explain()
    assert len(plan.kernels) == 1
    assert not plan.host_steps


# Each with how many routines and at most how many kernels.
PRODUCTS: dict[str, tuple[Function, tuple[Any, ...], int, int]] = {
    "dense": (
        lambda x, w, b: np.tanh(x @ w + b), (some(32, 64), some(64, 48), some(48)), 1, 1,
    ),
    "before and after": (
        lambda x, w: np.maximum(np.exp(x) @ w, 0) * 2, (some(32, 64), some(64, 48)), 1, 2,
    ),
    "transposed on the right": (lambda x, w: x @ w.T, (some(32, 64), some(48, 64)), 1, 0),
    "transposed on the left": (lambda x, w: x.T @ w, (some(64, 32), some(64, 48)), 1, 0),
    "two layers": (
        lambda x, w, v: relu(x @ w) @ v, (some(32, 64), some(64, 48), some(48, 32)), 2, 1,
    ),
    "attention": (
        lambda q, k, v: softmax(q @ k.T / 8) @ v, (some(40, 64), some(40, 64), some(40, 64)), 2, 1,
    ),
    "a batch": (lambda a, b: a @ b, (some(3, 32, 40), some(3, 40, 32)), 1, 0),
    "heads": (
        lambda q, k: np.einsum("bshd,bthd->bhst", q, k),
        (some(2, 32, 4, 16), some(2, 32, 4, 16)), 1, 2,
    ),
    "complex": (
        lambda a, b: a @ b + 1, (some(32, 32).astype("c8"), some(32, 32).astype("c8")), 1, 1,
    ),
    "small": (lambda x, w, b: np.tanh(x @ w + b), (some(4, 8), some(8, 4), some(4)), 0, 1),
    "vectors": (lambda a, b: a @ b, (some(30000), some(30000)), 0, 1),
    "vectors in a batch": (
        lambda a, b: np.einsum("bi,bi->b", a, b), (some(4, 9000), some(4, 9000)), 0, 1,
    ),
    "a vector and a long matrix": (lambda a, b: a @ b, (some(2, 9000), some(9000)), 1, 0),
    "a vector and a large matrix": (lambda a, b: a @ b, (some(1000), some(1000, 1000)), 1, 0),
    "a vector and a small matrix": (lambda a, b: a @ b, (some(80, 90), some(90)), 0, 1),
    "a vector and a computed matrix": (
        lambda a, x, b: 1.5 * a @ x + (b + 1) @ x, (some(99, 300), some(300), some(99, 300)), 0, 1,
    ),
    "a vector and a part of a matrix": (
        lambda a, x: (x @ a[:, 5:], a[3:] @ a[0]), (some(300, 305), some(300)), 0, 2,
    ),
    "a vector and a transposed matrix": (lambda a, x: a.T @ x, (some(300, 305), some(300)), 1, 0),
    "a computed matrix that others read": (
        lambda a, x: ((a + 1) @ x, a + 1), (some(300, 300), some(300)), 1, 1,
    ),
    "a matrix from both sides": (
        lambda a, x, y: (a @ x, y @ a), (some(80, 80), some(80), some(80)), 0, 2,
    ),
    "a vector and a matrix": (lambda a, b: a @ b, (some(200, 300), some(300)), 1, 0),
    "sixteen bits": (
        lambda a, b: a @ b, (some(64, 99).astype("f2"), some(99, 64).astype("f2")), 1, 3,
    ),
    "sixteen bits, by few rows": (
        lambda a, b: a @ b, (some(4, 990).astype("f2"), some(990, 64).astype("f2")), 0, 1,
    ),
    "truths": (lambda a, b: a @ b, (some(64, 99) > 0.9, some(99, 64) > 0.9), 1, 3),
    "integers": (
        lambda a, b: a @ b,
        (random.integers(0, 9, (32, 40)), random.integers(0, 9, (40, 32))), 0, 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    function, args, routines, kernels = PRODUCTS[name]
    plan = planned(function, *args)
    found = kinds(plan)
    assert found["routine"] == routines
    assert found["kernel"] <= kernels, plan.explain()
    assert not plan.host_steps


def test_large_scalars_are_stored_first() -> None:
    plan = planned(lambda x: x / np.sqrt((x * x).sum()), some(300, 300))
    assert kinds(plan) == {"kernel": 2}
    assert "whole array" in plan.explain()


def test_row_and_column_sums_are_split() -> None:
    plan = planned(lambda x: (x * 2).sum(0)[None, :] + (x * 2).sum(1)[:, None], some(20, 20))
    assert kinds(plan)["kernel"] > 1


def test_a_reduction_does_not_cross_a_transpose() -> None:
    plan = planned(lambda x: softmax(x.T), some(20, 30))
    assert kinds(plan) == {"kernel": 2}
    assert "transpose" in plan.explain()


def test_what_inner_axes_bring_is_not_computed_again_for_each_row() -> None:
    """A long chain along the last axis is stored before the loop over the first one; along the
    first axis it stays outside the loop over the last; a short one is computed again."""

    def long(x: Any) -> Any:
        for _ in range(12):
            x = np.maximum(x * 1.5, -x)
        return x

    x, row, column = some(20, 300), some(300), some(20, 1)
    assert kinds(planned(lambda x, v: x + long(v), x, row))["kernel"] == 2
    assert kinds(planned(lambda x, v: x + long(v), x, column))["kernel"] == 1
    assert kinds(planned(lambda x, v: x + v * 2 - 1, x, row))["kernel"] == 1


def test_what_shares_a_number_alone_keeps_its_rows() -> None:
    """Square arrays that meet in a scalar: where one has its rows, the other has them, too."""

    def both(s: Any, x: Any, y: Any) -> Any:
        t = s * s + 1
        return x / t, t, y[:, 1:] * t

    def rows(s: Any, x: Any, y: Any) -> Any:
        t = s * s + 1
        return x / t, t, (y[:, 1:] * t).sum(1)

    def columns(s: Any, x: Any, y: Any) -> Any:
        t = s * s + 1
        return x / t, t, (y[:, 1:] * t).sum(0)

    for function, shared in ((both, {(40, 41), (1, 1)}), (rows, {(40, 41)}), (columns, {(1, 1)})):
        plan = planned(function, some()[()], some(40, 40), some(40, 41))
        (call,) = (plan.call(step) for step in plan.steps if isinstance(step, KernelStep))
        loads = [i.index for i in call.fixed.instructions if i.op == "load" and i.index is not None]
        x, y = (index for index in loads if len(index.axes()) == 2)
        assert {tuple(sorted((x.stride(a), y.stride(a)))) for a in x.axes() & y.axes()} == shared


def test_rows_are_read_at_positions_that_a_kernel_before_found() -> None:
    """The rows are added up where they are read, rather than stored: only their numbers are."""

    def summed(table: Any, scores: Any) -> Any:
        return np.take(table, scores.argmax(axis=2), axis=0, mode="clip").sum(axis=0)

    plan = planned(summed, some(50, 32), some(4, 90, 50))
    assert kinds(plan) == {"kernel": 2}
    assert plan.peak_bytes <= 4 * 90 * 8 + ALIGN


def test_a_running_sum_reads_what_was_gathered_once() -> None:
    def running(table: Any, at: Any, mark: Any) -> Any:
        return np.cumsum(np.take(table, at, mode="clip") == mark, dtype=np.int32)

    at = random.integers(0, 100, 4096)
    mark = random.integers(0, 3, 4096)
    plan = planned(running, random.integers(0, 3, 100), at, mark)
    (line,) = (line for line in plan.explain().splitlines() if " gather " in line)
    assert "reduce_sum" not in line  # which reads each element sixteen times


def test_a_reshape_read_twice_is_stored() -> None:
    def function(x: Any) -> Any:
        y = np.tanh(x).reshape(15, 40)
        return y + y.sum(1, keepdims=True), np.exp(y)

    plan = planned(function, some(20, 30))
    assert kinds(plan)["kernel"] == 2


def rollout(steps: int) -> Function:
    def function(x: Any, w: Any, v: Any) -> Any:
        found = []
        for step in range(steps):
            h = np.tanh(np.concatenate([x, x * 0.5], -1) @ w + 0.01 * step)
            p = softmax(h @ v)
            x = np.where(p > 0.1 + 0.001 * step, x * 0.9, x + p)
            found.append(p.max())
        return x, np.stack(found)

    return function


def test_unrolled_steps_share_kernels() -> None:
    args = (some(16, 24), some(48, 40), some(40, 24))
    few = len(planned(rollout(3), *args).kernels)
    assert len(BACKEND.plan(tn.trace(rollout(20), *args)).kernels) <= few
    assert len(BACKEND.plan(tn.trace(rollout(400), *args)).kernels) <= few


def test_parts_of_one_shape_are_asked_once_how_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    access_of = values.access_of

    def counted(op: Any, *given: Any) -> Any:
        asked.append(op.name)
        return access_of(op, *given)

    monkeypatch.setattr(values, "access_of", counted)

    def f(x: Any) -> Any:
        return [np.sqrt(x[i : i + 5, j : j + 3]) for i in range(9) for j in (0, 1, 4)]

    planned(f, some(40, 12))
    assert asked.count("slice") == 4  # by whether it begins with the first row, or column


def test_there_are_programs_enough() -> None:
    """Whose kernels are counted: so many of each kind that fusion has nowhere to hide."""
    assert len(SAFE) + len(CHAINS) + len(ONE) + len(PRODUCTS) >= 60
    named = """
        add mul sub div pow max min exp log sqrt abs negate sigmoid tanh relu ceil floor sign
        reciprocal square erf expm1
    """
    assert set(named.split()) <= set(SAFE)


def test_the_first_step_shares_the_kernel_of_the_later_ones() -> None:
    """What is read stands in the order of first use, not in that of the program: in the first
    step the state is a parameter before the scale, later it is computed after it."""

    def steps(state: Any, scale: Any, w: Any) -> Any:
        for _ in range(3):
            state = np.tanh(state * scale) @ w
        return state

    plan = planned(steps, some(64, 96), some(64, 96), some(96, 96))
    assert kinds(plan) == {"kernel": 3, "routine": 3}
    assert len(plan.kernels) == 1


def test_explain_names_lines_and_host_steps() -> None:
    plan = planned(lambda x: np.sort(np.tanh(x) * 2j).imag + 1, some(5, 5))
    text = plan.explain()
    assert "test_kernels.py" in text
    assert "on the host: sort" in text
    assert [step.op for step in plan.host_steps] == ["sort"]
    assert plan.host_steps[0].reason
    assert "s0" in str(plan)


def test_long_code_is_parted_by_how_long_it_is() -> None:
    """Two hundred sums are one kernel; as many integer divisions, each of which is as long as forty
    sums, are several."""

    def repeated(op: Function) -> Function:
        def run(x: Any, y: Any) -> Any:
            for _ in range(100):
                x, y = op(y, x), op(x, y)
            return x, y

        return run

    x = np.arange(1, 51)
    assert len(planned(repeated(np.add), x, x + 3).steps) == 1
    divided = planned(repeated(lambda a, b: a // (b | 1)), x, x + 3)
    assert 5 <= len(divided.steps) <= 12
    assert len(divided.kernels) < len(divided.steps)  # equal parts share their code
    assert any("too long to compile" in note for note in divided.notes)


def logsumexp(x: Any) -> Any:
    most = x.max(-1, keepdims=True)
    return np.log(np.exp(x - most).sum(-1)) + most[..., 0]


def log_softmax(x: Any) -> Any:
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


@pytest.mark.parametrize(
    ("function", "shape", "kernels"),
    [
        (logsumexp, (1000, 64), 2),  # a logarithm for each of many short rows: vectors of them
        (logsumexp, (30, 64), 1),
        (logsumexp, (64, 4096), 1),
        (log_softmax, (1000, 64), 1),  # the row reads it
        (lambda x: np.exp(x.sum(0)), (64, 1000), 1),  # computed for many columns at once anyway
        (lambda x: np.sqrt((x * x).sum(-1)), (1000, 64), 1),
        (lambda x: np.tanh(x.mean(-1)).sum() * x, (1000, 64), 2),
    ],
)
def test_functions_of_what_short_rows_come_to(
    function: Function, shape: tuple[int, int], kernels: int
) -> None:
    assert len(planned(function, some(*shape)).kernels) == kernels


def test_a_function_of_what_short_rows_come_to_beside_a_hook() -> None:
    """A hook is a node that makes nothing."""
    seen, x = list[Any](), abs(some(1000, 64))

    def f(x: Any) -> Any:
        sums = x.sum(-1)
        tn.hook("seen", sums[:3], seen.append)
        return np.log(sums)

    np.testing.assert_allclose(tn.jit(f)(x), np.log(x.sum(-1)), rtol=1e-6)
    assert seen
