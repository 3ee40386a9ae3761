"""Products go before the loops that need not make them: what goes, what stays, what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenfold as tn
from tenfold.graph import Graph
from tenfold.graph.check import check
from tenfold.graph.op import PRODUCT, Loop, Routine
from tenfold.ops import TABLE
from tenfold.plan.passes import hoist as pass_
from tenfold.plan.passes.hoist import hoist
from tenfold.plan.passes.write_out import rerolled
from tenfold.reference import evaluate

Array = np.ndarray[Any, Any]
Body = Callable[..., Any]
ROUNDS, ROWS, N, M = 40, 4, 24, 20


def drawn(*shape: int, dtype: str = "f4") -> Array:
    made = np.random.default_rng(shape).standard_normal(shape) / np.sqrt(shape[-1])
    return (made * (8 if dtype[0] in "iu" else 1)).astype(dtype)


def products(graph: Graph) -> int:
    """How many products a graph makes, its scopes aside."""
    rows = [TABLE[node.op].lowering for node in graph.nodes]
    return sum(isinstance(row, Routine) and row.name == PRODUCT for row in rows)


def inside(graph: Graph) -> int:
    """How many products the bodies of its loops make."""
    loops = [n for n in graph.nodes if isinstance(TABLE[n.op].lowering, Loop)]
    return sum(products(scope) for node in loops for scope in node.scopes)


def said(plan: Any) -> int:
    """Of how many products a plan says that they are made before a loop."""
    notes = [note for one in plan.every for note in one.notes if "before the loop" in note]
    return sum(int(note.split("× ")[0]) if "× " in note else 1 for note in notes)


def in_python(body: Body, h: Any, xs: Array, weights: Any, reverse: bool = False) -> Any:
    """What a scan gives, by NumPy."""
    made = []
    for x in xs[::-1] if reverse else xs:
        h, y = body(h, x, *weights)
        made.append(y)
    return h, np.stack(made[::-1] if reverse else made)


def scanned(body: Body, reverse: bool = False) -> Callable[..., Any]:
    def run(h: Any, xs: Any, *weights: Any) -> Any:
        return tn.scan(lambda h, x: body(h, x, *weights), h, xs, reverse=reverse)

    return run


# Bodies: what is made before the loop and what stays, with shapes of the carry, slices and weights.


def recurrent(h: Any, x: Any, w: Any, u: Any) -> Any:
    h = np.tanh(x @ w + h @ u)
    return h, h * 2


def from_the_left(h: Any, x: Any, w: Any) -> Any:
    h = np.tanh(w @ x + h / 2)
    return h, h


def transposed(h: Any, x: Any, w: Any) -> Any:
    h = np.tanh(x.T @ w + h / 2)
    return h, x.sum()


def by_einsum(h: Any, x: Any, w: Any) -> Any:
    h = h / 2 + np.einsum("nb,nm->mb", x, w)
    return h, h


def in_a_batch(h: Any, x: Any, w: Any) -> Any:
    h = h / 2 + np.einsum("bn,bnm->bm", x, w)
    return h, h


def over_two_axes(h: Any, x: Any, w: Any) -> Any:
    h = h / 2 + np.tensordot(x, w, axes=([0, 1], [1, 0]))
    return h, h


def several(h: Any, x: Any, w: Any, v: Any) -> Any:
    h = np.tanh(x @ w) * h + (x * 2) @ v
    return h, h


def one_after_another(h: Any, x: Any, w: Any, v: Any) -> Any:
    h = h / 2 + np.maximum(x @ w, 0) @ v
    return h, h


def with_work_before(h: Any, x: Any, w: Any) -> Any:
    x = (x - x.mean(axis=-1, keepdims=True)) / x.std(axis=-1, keepdims=True)
    h = h / 2 + np.clip(np.concatenate([x, -x], axis=-1), -1, 1) @ (w * 2)
    return h, x


def of_captures(h: Any, x: Any, w: Any, v: Any) -> Any:
    return h * x.sum() / 8 + w @ v, x


def handed_out(h: Any, x: Any, w: Any) -> Any:
    return h + x[:, :1], x @ w


BODIES: dict[str, tuple[Body, int, int, tuple[tuple[int, ...], ...]]] = {
    "rows": (recurrent, 1, 1, ((ROWS, M), (ROWS, N), (N, M), (M, M))),
    "a row": (recurrent, 1, 1, ((1, M), (1, N), (N, M), (M, M))),
    "a vector": (recurrent, 1, 1, ((M,), (N,), (N, M), (M, M))),
    "a vector from the left": (from_the_left, 1, 0, ((M,), (N,), (M, N))),
    "columns from the left": (from_the_left, 1, 0, ((M, ROWS), (N, ROWS), (M, N))),
    "transposed": (transposed, 1, 0, ((ROWS, M), (N, ROWS), (N, M))),
    "einsum": (by_einsum, 1, 0, ((M, ROWS), (N, ROWS), (N, M))),
    "a batch": (in_a_batch, 1, 0, ((3, M), (3, N), (3, N, M))),
    "two axes": (over_two_axes, 1, 0, ((M,), (6, 4), (4, 6, M))),
    "several": (several, 2, 0, ((ROWS, M), (ROWS, N), (N, M), (N, M))),
    "one after another": (one_after_another, 2, 0, ((ROWS, M), (ROWS, N), (N, 32), (32, M))),
    "with work before": (with_work_before, 1, 0, ((ROWS, M), (ROWS, N), (2 * N, M))),
    "of captures": (of_captures, 1, 0, ((ROWS, M), (N,), (ROWS, N), (N, M))),
    "handed out": (handed_out, 1, 0, ((ROWS, 1), (ROWS, N), (N, M))),
}


def given_for(
    name: str, dtype: str = "f4", rounds: int = ROUNDS
) -> tuple[Array, Array, list[Array]]:
    carry, row, *weights = BODIES[name][3]
    xs = drawn(rounds, *row, dtype=dtype)
    return drawn(*carry, dtype=dtype), xs, [drawn(*shape, dtype=dtype) for shape in weights]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_what_goes(name: str, reverse: bool) -> None:
    body, gone, left, _ = BODIES[name]
    h, xs, weights = given_for(name)
    function = scanned(body, reverse)
    graph = tn.trace(function, h, xs, *weights)
    made, notes = hoist(graph, TABLE)
    check(made, TABLE)
    assert (products(made), inside(made), len(notes)) == (gone, left, gone), made
    assert hoist(made, TABLE) == (made, ())  # nothing is left to go
    wanted = in_python(body, h, xs, weights, reverse)
    jitted = tn.jit(function)
    for found in (evaluate(made, [h, xs, *weights]), jitted(h, xs, *weights)):
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)
    assert said(jitted.plan(h, xs, *weights)) == gone


@pytest.mark.parametrize("dtype", ["f2", "f8", "c8", "c16", "i1", "i2", "i4", "i8", "u8"])
def test_dtypes(dtype: str) -> None:
    """Integers are exact: they wrap as NumPy's do."""

    def body(h: Any, x: Any, w: Any) -> Any:
        h = h + x @ w
        return h, h

    rounds, rows, n, m = 80, 4, 40, 40
    h, xs, w = (drawn(*shape, dtype=dtype) for shape in ((rows, m), (rounds, rows, n), (n, m)))
    function = scanned(body)
    assert products(hoist(tn.trace(function, h, xs, w), TABLE)[0]) == 1
    got, wanted = tn.jit(function)(h, xs, w), in_python(body, h, xs, [w])
    close = {"f2": 0.05, "c8": 1e-4}.get(dtype, 1e-12)
    for one, other in zip(got, wanted, strict=True):
        assert one.dtype == other.dtype
        if dtype[0] in "iu":
            np.testing.assert_array_equal(one, other)
        else:
            np.testing.assert_allclose(one, other, rtol=close, atol=close)


def test_what_is_not_finite_stays_in_its_round() -> None:
    body = BODIES["rows"][0]
    h, xs, weights = given_for("rows")
    xs[-1, 0, 0], xs[-1, 1, 1], xs[-1, 2] = np.nan, np.inf, -0.0
    got = tn.jit(scanned(body))(h, xs, *weights)
    with np.errstate(invalid="ignore"):
        wanted = in_python(body, h, xs, weights)
    assert np.isnan(wanted[1][-1]).any()
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


# Loops in other things, and loops that were found.


def test_loops_that_python_unrolled() -> None:
    def forwards(xs: Any, w: Any, u: Any) -> Any:
        h, seen = np.zeros((ROWS, M), xs.dtype), []
        for x in xs:
            h = np.tanh(x @ w + h @ u)
            seen.append(h)
        return np.stack(seen)

    def backwards(xs: Any, w: Any, u: Any) -> Any:
        h = np.zeros((ROWS, M), xs.dtype)
        for t in reversed(range(3, len(xs))):
            h = np.tanh(xs[t] @ w + h @ u)
        return h

    _, xs, weights = given_for("rows")
    for function in (forwards, backwards):
        made, notes = rerolled(tn.trace(function, xs, *weights), TABLE)
        assert (products(made), inside(made)) == (1, 1), made
        assert ["rounds found" in str(note) for note in notes] == [True, False]
        got = tn.jit(function)(xs, *weights)
        np.testing.assert_allclose(got, function(xs, *weights), rtol=2e-5, atol=2e-5)


def test_loops_in_scopes() -> None:
    h, xs, weights = given_for("rows")
    run = scanned(recurrent)

    def in_a_branch(flag: Any, *given: Any) -> Any:
        return tn.cond(flag, lambda: run(*given)[0], lambda: given[0] * 2)

    def in_a_loop(h: Any, many: Any, *weights: Any) -> Any:
        return tn.scan(lambda h, xs: run(h, xs, *weights), h, many)[1]

    branch = tn.jit(in_a_branch)
    wanted = in_python(recurrent, h, xs, weights)[0]
    np.testing.assert_allclose(branch(True, h, xs, *weights), wanted, rtol=2e-5, atol=2e-5)
    np.testing.assert_array_equal(branch(False, h, xs, *weights), h * 2)
    assert said(branch.plan(True, h, xs, *weights)) == 1

    many = np.stack([xs, -xs, xs * 2])
    loop, state, stacked = tn.jit(in_a_loop), h, []
    for one in many:
        state, rows = in_python(recurrent, state, one, weights)
        stacked.append(rows)
    np.testing.assert_allclose(loop(h, many, *weights), stacked, rtol=2e-5, atol=2e-5)
    plan = loop.plan(h, many, *weights)
    assert said(plan) == 1
    assert f"products of {ROUNDS} rounds" in plan.explain()


def test_in_lanes() -> None:
    h, xs, weights = given_for("rows")
    lanes = np.stack([xs, xs * 2])
    run = scanned(recurrent)
    got = tn.jit(tn.vmap(lambda xs: run(h, xs, *weights)[1]))(lanes)
    wanted = [in_python(recurrent, h, one, weights)[1] for one in lanes]
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5)


# What stays.


def carried(h: Any, x: Any, w: Any) -> Any:
    return (h + x) @ w, x


def of_slices(h: Any, x: Any, w: Any) -> Any:
    return h + x @ x.T, x


def at_an_index(h: Any, x: Any, w: Any) -> Any:
    """An index may be out of range."""
    return h + w[(x[0, 0] * 0).astype("i8")] @ w, x


def shown(h: Any, x: Any, w: Any) -> Any:
    seen = tn.call_host(lambda x: x, x, x)
    return h + seen @ w, x


def chosen(h: Any, x: Any, w: Any) -> Any:
    return tn.cond(x[0, 0] > 0, lambda: h + x @ w, lambda: h), x


@pytest.mark.parametrize("body", [carried, of_slices, at_an_index, shown, chosen])
def test_what_stays(body: Body) -> None:
    side = ROWS if body is of_slices else N
    h, xs, w = drawn(ROWS, side), drawn(ROUNDS, ROWS, N), drawn(N, N)
    graph = tn.trace(scanned(body), h, xs, w)
    assert hoist(graph, TABLE) == (graph, ())


def test_too_much_to_keep_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    h, xs, weights = given_for("several")
    graph = tn.trace(scanned(several), h, xs, *weights)
    product = ROUNDS * ROWS * M * 4
    for most, gone in (
        (product - 1, 0),
        (product, 1),  # the other has an operand that is computed
        (2 * product + xs.nbytes - 1, 1),
        (2 * product + xs.nbytes, 2),
    ):
        monkeypatch.setattr(pass_, "_MOST", most)
        assert len(hoist(graph, TABLE)[1]) == gone


def test_what_is_on_the_way_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def wide(h: Any, x: Any, w: Any) -> Any:
        return h + (x[:, :, None] * x[0]).max(axis=-1) @ w, ()

    h, xs, w = drawn(ROWS, M), drawn(ROUNDS, ROWS, N), drawn(N, M)
    graph = tn.trace(lambda h, xs, w: tn.scan(lambda h, x: wide(h, x, w), h, xs)[0], h, xs, w)
    assert len(hoist(graph, TABLE)[1]) == 1
    monkeypatch.setattr(pass_, "_MOST", ROUNDS * ROWS * N * N * 4 - 1)
    assert len(hoist(graph, TABLE)[1]) == 0


@pytest.mark.parametrize(("rows", "gone"), [(6, 1), (7, 0)])
def test_many_rows_stay(rows: int, gone: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the terms, unless all of it stays in a cache."""
    given = drawn(rows, M), drawn(ROUNDS, rows, N), drawn(N, M), drawn(M, M)
    graph = tn.trace(scanned(recurrent), *given)
    assert len(hoist(graph, TABLE)[1]) == 1
    monkeypatch.setattr(pass_, "_CACHED", 0)
    assert len(hoist(graph, TABLE)[1]) == gone


@pytest.mark.parametrize(("rows", "gone"), [(31, 1), (32, 0)])
def test_blocks_of_rows_stay(rows: int, gone: int) -> None:
    given = drawn(ROUNDS, rows, N), drawn(N, M)
    graph = tn.trace(lambda xs, w: tn.map(lambda x: np.tanh(x @ w), xs), *given)
    assert len(hoist(graph, TABLE)[1]) == gone


@pytest.mark.parametrize("rounds", [0, 1])
def test_few_rounds(rounds: int) -> None:
    h, xs, weights = given_for("rows", rounds=rounds)
    function = scanned(recurrent)
    graph = tn.trace(function, h, xs, *weights)
    assert hoist(graph, TABLE) == (graph, ())
    last, stacked = tn.jit(function)(h, xs, *weights)
    wanted = in_python(recurrent, h, xs, weights) if rounds else (h, np.empty((0, ROWS, M), "f4"))
    np.testing.assert_allclose(last, wanted[0], rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(stacked, wanted[1], rtol=2e-5, atol=2e-5)


def test_no_round_raises_nothing() -> None:
    """A row that is not there is never asked for."""

    def body(h: Any, x: Any, w: Any, at: Any) -> Any:
        return h + w[at] @ w, x

    def run(h: Any, xs: Any, w: Any, at: Any) -> Any:
        return tn.scan(lambda h, x: body(h, x, w, at), h, xs)[0]

    h, w, function = drawn(N), drawn(N, N), tn.jit(run)
    np.testing.assert_array_equal(function(h, drawn(0, 1), w, np.int64(99)), h)
    with pytest.raises(IndexError):
        function(h, drawn(ROUNDS, 1), w, np.int64(99))


def test_effects_come_in_order() -> None:
    seen: list[float] = []

    def body(h: Any, x: Any, w: Any) -> Any:
        tn.hook("seen", x[0, 0], lambda v: seen.append(float(v)))
        return h + x @ w, ()

    h, xs, w = drawn(ROWS, M), drawn(ROUNDS, ROWS, N), drawn(N, M)
    function = tn.jit(lambda h, xs, w: tn.scan(lambda h, x: body(h, x, w), h, xs)[0])
    for _ in range(2):
        seen.clear()
        got = function(h, xs, w)
        assert seen == [float(x) for x in xs[:, 0, 0]]
    np.testing.assert_allclose(got, h + (xs @ w).sum(axis=0), rtol=2e-5, atol=2e-5)
    assert said(function.plan(h, xs, w)) == 1


# Bodies that are drawn, of integers, which are exact: squares from slices, captures and carries.

STEPS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: a @ b,
    lambda a, b: b.T @ a,
    lambda a, b: np.einsum("ij,jk->ki", a, b),
    lambda a, b: np.tensordot(a, b, axes=([0], [1])),
    lambda a, b: np.einsum("ij,ijk->ik", a, np.stack([b] * 4)),
    lambda a, b: a + b,
    lambda a, b: np.maximum(a, 3).T,
    lambda a, b: np.concatenate([a[:2], b[2:]]),
    lambda a, b: a - b.sum(axis=0),
    lambda a, b: np.where(a > b, a, b[::-1]),
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 99), st.integers(0, 99)), max_size=9),
    st.lists(st.integers(0, 99), min_size=5, max_size=5),
    st.sampled_from([0, 1, 2, 5]),
    st.booleans(),
)
def test_bodies_that_are_drawn(steps: Any, ends: list[int], rounds: int, reverse: bool) -> None:
    def body(state: Any, slices: Any, *captures: Any) -> Any:
        values = [*captures, *state, *slices]
        for step, one, other in steps:
            values.append(step(values[one % len(values)], values[other % len(values)]))
        carried, other, *stacked = (values[-1 - (end % len(values))] for end in ends)
        return (carried, other), tuple(stacked)

    def run(*arrays: Any) -> Any:
        w, u, h, c, xs, ys = arrays
        return tn.scan(lambda s, x: body(s, x, w, u), (h, c), (xs, ys), reverse=reverse)

    shapes = [(4, 4)] * 4 + [(rounds, 4, 4)] * 2
    arrays = [np.random.default_rng(n).integers(-9, 9, shape) for n, shape in enumerate(shapes)]
    graph = tn.trace(run, *arrays)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pass_._Hoisting, "_by_library", lambda *_: True)
        made, _ = hoist(graph, TABLE)
    check(made, TABLE)
    for got, wanted in zip(evaluate(made, arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_array_equal(got, wanted)


# Plans.


def test_bits_on_any_number_of_threads() -> None:
    given = drawn(8, 64), drawn(128, 8, 64), drawn(64, 64), drawn(64, 64)
    before, found = tn.config.threads, []
    try:
        for threads in (1, 2, 3, 8):
            tn.config.threads = threads
            found.append([x.tobytes() for x in tn.jit(scanned(recurrent))(*given)])
    finally:
        tn.config.threads = before
    assert all(one == found[0] for one in found)


def test_the_plan_says_which_lines() -> None:
    h, xs, weights = given_for("several")
    line = several.__code__.co_firstlineno + 1
    text = tn.jit(scanned(several)).plan(h, xs, *weights).explain()
    words = f"line {line}: products of {ROUNDS} rounds made before the loop, as one"
    assert f"2× {Path(__file__)}, {words}" in text
    h, xs, weights = given_for("of captures")
    text = tn.jit(scanned(of_captures)).plan(h, xs, *weights).explain()
    assert f"the same product in {ROUNDS} rounds made before the loop" in text


def test_other_sizes() -> None:
    """By a template or in full: what goes is decided anew for each."""
    function = tn.jit(scanned(recurrent))
    for rounds, rows, n in ((40, 4, 24), (41, 4, 24), (50, 5, 28), (2, 4, 24), (60, 3, 30)):
        given = drawn(rows, M), drawn(rounds, rows, n), drawn(n, M), drawn(M, M)
        got, wanted = function(*given), in_python(recurrent, given[0], given[1], given[2:])
        for one, other in zip(got, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)
        assert said(function.plan(*given)) == (rounds > 2)


def test_an_argument_that_is_given_away() -> None:
    h, xs, weights = given_for("rows")
    function = tn.jit(scanned(recurrent), donate=("xs",))
    wanted = in_python(recurrent, h, xs, weights)
    for _ in range(2):
        got = function(h, xs.copy(), *weights)
        for one, other in zip(got, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


def test_a_plan_in_a_file(tmp_path: Path) -> None:
    h, xs, weights = given_for("rows")
    function = tn.jit(scanned(recurrent))
    wanted = function(h, xs, *weights)
    function.plan(h, xs, *weights).save(tmp_path / "plan")
    for got, one in zip(tn.load(tmp_path / "plan")(h, xs, *weights), wanted, strict=True):
        np.testing.assert_array_equal(got, one)


def test_nothing_diverges() -> None:
    h, xs, weights = given_for("rows")
    assert tn.bisect(scanned(recurrent), h, xs, *weights, script=None).disagreement is None


def test_a_wrong_product_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check compares the graph with products before loops to the one that was traced."""
    right = pass_._Hoisting._product

    def wrong(self: Any, builder: Any, *given: Any) -> int:
        made: int = builder.node("neg", [right(self, builder, *given)])[0]
        return made

    monkeypatch.setattr(pass_._Hoisting, "_product", wrong)
    h, xs, weights = given_for("rows")
    with pytest.warns(tn.ParityWarning, match="written out"):
        got = tn.jit(scanned(recurrent))(h, xs, *weights)
    wanted = in_python(recurrent, h, xs, weights)
    np.testing.assert_allclose(got[1], wanted[1], rtol=2e-5, atol=2e-5)


def test_the_graph_grows_with_the_program() -> None:
    def deep(count: int) -> int:
        def body(h: Any, x: Any, w: Any) -> Any:
            for _ in range(count):
                x = np.maximum(x @ w, 0) + x
            return h + x, ()

        given = drawn(2, N), drawn(ROUNDS, 2, N), drawn(N, N)
        graph = tn.trace(lambda *g: tn.scan(lambda h, x: body(h, x, g[2]), *g[:2])[0], *given)
        made, notes = hoist(graph, TABLE)
        assert len(notes) == count
        return sum(len(one.nodes) for one in (made, *made.scopes()))

    assert deep(80) - deep(40) == 2 * (deep(40) - deep(20))
