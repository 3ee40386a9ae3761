"""Loops that are one native function give the interpreter's bits and the evaluator's values."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.run import compiled
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.parity.wiring import wiring_of
from tenfold.plan import KernelStep, Plan
from tenfold.plan.steps.loops import native_loops
from tenfold.reference import evaluate

Array = np.ndarray[Any, Any]
MANY = 40  # rounds: enough for a function


def interpreted(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> CompiledProgram:
    with monkeypatch.context() as patch:
        patch.setattr(compiled, "loop_functions", lambda *_: {})
        return CompiledProgram(plan)


def run_both(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    monkeypatch: pytest.MonkeyPatch,
    functions: int = 1,
) -> list[Array]:
    """What a function's plan gives with native loops: as many as stated, with the bits that the
    interpreter gives, near what the evaluator gives."""
    arrays = [np.asarray(a) for a in arguments]
    graph = tn.trace(function, *arguments)
    plan = BACKEND.plan(graph)
    program = CompiledProgram(plan)
    assert len(program.functions) == functions, plan.explain()
    made = program([a.copy() for a in arrays])
    other = interpreted(plan, monkeypatch)([a.copy() for a in arrays])
    for one, two, wanted in zip(made, other, evaluate(graph, arrays), strict=True):
        assert one.tobytes() == two.tobytes()
        np.testing.assert_allclose(one, wanted, rtol=1e-9)
    return made


def test_a_scalar_recurrence(monkeypatch: pytest.MonkeyPatch) -> None:
    run_both(lambda x, b: tn.fori_loop(0, MANY, lambda i, x: x * 0.9 + b + i, x), (1.5, 0.25),
             monkeypatch)  # fmt: skip


@pytest.mark.parametrize("start", [1.0, 100.0, np.nan, np.inf, 1e-30])
def test_a_while_loop_ends_as_its_test_says(start: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any) -> Any:
        return tn.while_loop(lambda s: s[0] < 50, lambda s: (s[0] * 1.5, s[1] + 1), (x, 0))

    with np.errstate(all="ignore"):
        run_both(function, (np.float64(start),), monkeypatch)


def test_carries_that_swap_and_one_that_is_passed_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(a: Any, b: Any, c: Any) -> Any:
        return tn.fori_loop(0, MANY + 1, lambda i, s: (s[1], s[0] + 1, s[2]), (a, b, c))

    a, b, c = run_both(function, (1.0, 2.0, np.arange(3.0)), monkeypatch)
    assert (a, b) == (22.0, 22.0)
    np.testing.assert_array_equal(c, np.arange(3.0))


@pytest.mark.parametrize("size", [3, 500])
def test_arrays_that_swap(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def function(a: Any, b: Any) -> Any:
        return tn.fori_loop(0, MANY + 1, lambda i, s: (s[1] * 0.5, s[0]), (a, b))

    run_both(function, (np.arange(float(size)), np.ones(size)), monkeypatch)


def test_one_carry_stands_twice_among_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any, ys: Any) -> Any:
        def step(c: Any, y: Any) -> Any:
            c = c + y
            return c, (c, c)

        return tn.scan(step, x, ys)

    run_both(function, (0.5, np.arange(50.0)), monkeypatch)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(64,), (64, 3), (64, 100)])
def test_slices_and_stacks(
    shape: tuple[int, ...], reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def function(x: Any, ys: Any) -> Any:
        def step(c: Any, y: Any) -> Any:
            return c + y, (c * y, y - c)

        return tn.scan(step, x, ys, reverse=reverse)

    ys = np.random.default_rng(1).standard_normal(shape)
    run_both(function, (np.zeros(shape[1:]), ys), monkeypatch)


def test_integers_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any, small: Any) -> Any:
        def step(i: Any, s: Any) -> Any:
            return s[0] * np.uint64(6364136223846793005) + np.uint64(1), s[1] * 3 + 1

        return tn.fori_loop(0, MANY, step, (x, small))

    run_both(function, (np.uint64(7), np.int8(5)), monkeypatch)


@pytest.mark.parametrize("dtype", [np.bool_, np.int16, np.float32, np.complex128])
def test_carries_of_other_dtypes(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any, y: Any) -> Any:
        return tn.fori_loop(0, MANY, lambda i, s: (s[1], s[0] ^ s[1] if dtype is np.bool_ else
                                                   s[0] - s[1]), (x, y))  # fmt: skip

    run_both(function, (dtype(1), dtype(1)), monkeypatch)


def test_empty_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any, ys: Any) -> Any:
        return tn.scan(lambda c, y: (c + 1, (y, c)), x, ys)

    run_both(function, (np.zeros((0, 2)), np.zeros((MANY, 0))), monkeypatch)


def test_no_rounds_leave_what_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any, a: Any, n: Any) -> Any:
        def step(i: Any, s: Any) -> Any:
            x, a = s
            return x + 1, a * 2

        return tn.fori_loop(0, n, step, (x, a))

    for n in (-3, 0, 1, 2):
        run_both(function, (1.0, np.arange(100.0), n), monkeypatch)
    assert native_loops(
        BACKEND.plan(tn.trace(lambda x: tn.fori_loop(0, 0, lambda i, x: x, x), 1.0))
    )


def test_loops_nest_in_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(a: Any) -> Any:
        n = a.shape[0]

        def row(i: Any, a: Any) -> Any:
            def column(j: Any, a: Any) -> Any:
                dot = tn.fori_loop(0, j, lambda k, s: s + a[i, k] * a[j, k], 0.0)
                a[i, j] = (a[i, j] - dot) / a[j, j]
                return a

            a = tn.fori_loop(0, i, column, a)
            dot = tn.fori_loop(0, i, lambda k, s: s + a[i, k] * a[i, k], 0.0)
            a[i, i] = np.sqrt(a[i, i] - dot)
            return a

        return tn.fori_loop(0, n, row, a)

    a = np.random.default_rng(0).random((9, 9))
    a = a @ a.T + 9 * np.eye(9)
    (made,) = run_both(function, (a,), monkeypatch)
    np.testing.assert_allclose(np.tril(made), np.linalg.cholesky(a), rtol=1e-12)


def test_a_branch_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(a: Any, k: Any) -> Any:
        def update(i: Any, a: Any) -> Any:
            a[i] = a[i] - a[i - 1]
            return a

        def step(i: Any, a: Any) -> Any:
            a = tn.cond(a[i] > a[i - 1], lambda a: update(i, a), lambda a: a, a)
            more = [lambda: a[0], lambda: a[1] + 1, lambda: a[2] * 2]
            a[0] = tn.switch(a[i].astype(int) + k, more)
            return a

        return tn.fori_loop(1, a.shape[0], step, a)

    run_both(function, (np.random.default_rng(0).standard_normal(60) * 3, -1), monkeypatch)


UPDATES: dict[str, Callable[[Any, Any], Any]] = {}


def update(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    UPDATES[function.__name__] = function
    return function


@update
def once(i: Any, a: Any) -> Any:
    a[i] = 0.5 * a[i - 1] + a[i]
    return a


@update
def twice(i: Any, a: Any) -> Any:
    a[i] = a[i] + a[i - 1]
    a[i - 1] = a[i - 1] * 0.5
    return a


@update
def three_times(i: Any, a: Any) -> Any:
    a[i] += 1
    a[i - 1] = a[i]
    a[0] = a[i - 1] * 0.5
    return a


@update
def a_read_before_and_one_after(i: Any, a: Any) -> Any:
    before = a[i - 1]
    a[i - 1] = a[i]
    a[i] = before + a[i - 1]
    return a


@update
def a_sum_before(i: Any, a: Any) -> Any:
    total = a.sum()
    a[i] = total * 1e-3
    return a


@update
def in_a_branch(i: Any, a: Any) -> Any:
    def changed(a: Any) -> Any:
        a[i] = a[i] * 2
        return a

    return tn.cond(a[i] > 0, changed, lambda a: a, a)


@update
def in_both_branches(i: Any, a: Any) -> Any:
    def doubled(a: Any) -> Any:
        a[i] = a[i] * 2
        return a

    def halved(a: Any) -> Any:
        a[i - 1] = a[i] * 0.5
        a[i] = 0
        return a

    return tn.cond(a[i] > 0, doubled, halved, a)


@update
def in_an_inner_loop(i: Any, a: Any) -> Any:
    def inner(j: Any, a: Any) -> Any:
        a[j] = a[j] + a[i]
        return a

    return tn.fori_loop(0, i, inner, a)


@pytest.mark.parametrize("name", UPDATES)
def test_updates_in_place_copy_no_array(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often an array is updated in a round, it stays where it is."""

    def function(a: Any) -> Any:
        return tn.fori_loop(1, a.shape[0], UPDATES[name], a)

    a = np.random.default_rng(2).standard_normal(200)
    run_both(function, (a,), monkeypatch)
    plan = BACKEND.plan(tn.trace(function, a))
    (outer,) = (s for s in plan.steps if s.kind == "loop")
    big = [n for n, s in enumerate(outer.outputs) if plan.slots[s].type.nbytes == a.nbytes]
    assert all(outer.second[n] == outer.outputs[n] for n in big), plan  # it is updated in place
    assert all(inner.greatest_live < a.nbytes for inner in plan.every), plan


def rows_by_python(a: Any) -> Any:
    for i in range(1, a.shape[0]):
        a[i] = a[i] + a[i - 1]
        a[i - 1] = a[i] * 0.5
    return a


def elements_by_python(a: Any) -> Any:
    for i in range(1, a.shape[0]):
        a[i, 1] += a[i - 1, 2]
        a[i, 1] /= 3.0
    return a


def rows_by_slices(a: Any) -> Any:
    def step(i: Any, a: Any) -> Any:
        row = tn.dynamic_slice(a, (i - 1, 0), (1, a.shape[1]))
        a = tn.dynamic_update(a, row * 0.5, (i, 0))
        return tn.dynamic_update(a, row + 1, (i - 1, 0))

    return tn.fori_loop(1, a.shape[0], step, a)


@pytest.mark.parametrize("function", [rows_by_python, elements_by_python, rows_by_slices])
@pytest.mark.parametrize("columns", [4, 40])
def test_a_round_touches_what_it_updates_and_no_more(
    function: Callable[..., Any], columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An array of more than a few numbers is updated in place, twice in a round too."""
    a = np.random.default_rng(4).standard_normal((50, columns))
    run_both(function, (a,), monkeypatch)
    plan = BACKEND.plan(tn.trace(function, a))
    (step,) = (s for s in plan.steps if s.kind == "loop")
    body = plan.plans[step.plans[-1]]
    for kernel in (s for s in body.steps if isinstance(s, KernelStep)):
        call = body.call(kernel)
        assert prod(call.size(axis.extent) for axis in call.kernel.axes) <= columns
    assert body.greatest_live < a.nbytes


def reads_beyond(a: Any) -> Any:
    def step(i: Any, a: Any) -> Any:
        a[i] = a[2 * i] + 1
        return a

    return tn.fori_loop(0, a.shape[0], step, a)


def writes_before(a: Any) -> Any:
    def step(i: Any, a: Any) -> Any:
        a[-3 * i] = 1.0
        return a

    return tn.fori_loop(0, a.shape[0], step, a)


def reads_beyond_in_an_inner_loop(a: Any) -> Any:
    def step(i: Any, total: Any) -> Any:
        return total + tn.fori_loop(0, i, lambda j, s: s * 0.5 + a[i + j], total)

    return tn.fori_loop(0, a.shape[0], step, 0.0)


def tests_what_lies_beyond(a: Any) -> Any:
    return tn.while_loop(lambda i: a[i] >= 0, lambda i: i + 3, 0)


def reads_a_carry_of_a_few_numbers(a: Any) -> Any:
    def step(i: Any, s: Any) -> Any:
        few, total = s
        return few * 0.5 + total, total + few[i % 5]

    return tn.fori_loop(0, a.shape[0], step, (a[:4], 0.0))


def reads_beyond_in_a_branch(a: Any) -> Any:
    def step(i: Any, s: Any) -> Any:
        return tn.cond(i > 20, lambda: s + a[i + 30], lambda: s + 1)

    return tn.fori_loop(0, a.shape[0], step, 0.0)


@pytest.mark.parametrize(
    "function",
    [
        reads_beyond,
        writes_before,
        reads_beyond_in_an_inner_loop,
        tests_what_lies_beyond,
        reads_a_carry_of_a_few_numbers,
        reads_beyond_in_a_branch,
    ],
)
def test_a_fault_is_named_as_the_interpreter_names_it(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    a = np.arange(50.0)
    plan = BACKEND.plan(tn.trace(function, a))
    program = CompiledProgram(plan)
    assert len(program.functions) == 1
    with pytest.raises(IndexError) as caught:
        program([a.copy()])
    with pytest.raises(IndexError) as told:
        interpreted(plan, monkeypatch)([a.copy()])
    assert str(caught.value) == str(told.value)
    assert Path(__file__).name in str(caught.value)


@pytest.fixture
def alarm() -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_an_endless_loop_hears_of_signals(alarm: None) -> None:
    program = CompiledProgram(
        BACKEND.plan(tn.trace(lambda x: tn.while_loop(lambda x: x < 2, lambda x: x * 1.0, x), 1.0))
    )
    assert len(program.functions) == 1
    with pytest.raises(KeyboardInterrupt):
        program([np.float64(1)])


def test_other_lengths_and_sizes_share_a_function() -> None:
    def function(a: Any) -> Any:
        return tn.fori_loop(1, a.shape[0], UPDATES["twice"], a)

    names = {
        next(iter(CompiledProgram(BACKEND.plan(tn.trace(function, np.zeros(n)))).loops.values()))
        for n in (100, 1000, 5000)
    }
    assert len(names) == 1


def test_a_plan_with_another_function_is_wired_in_another_way() -> None:
    """It does not answer before its own check: its function was not judged."""

    def function(a: Any) -> Any:
        return tn.fori_loop(0, MANY, lambda i, a: a * 0.5 + i, a)

    found = []
    for n in (20, 100, 200):  # kept on the stack, or not
        graph = tn.trace(function, np.zeros(n))
        program = CompiledProgram(BACKEND.plan(graph))
        found.append((wiring_of(program, graph), *program.loops.values()))
    assert found[0][0] != found[1][0]
    assert found[0][1] != found[1][1]
    assert found[1] == found[2]
    assert found[1][0] is not None


def test_a_function_goes_to_a_file_and_comes_back(tmp_path: Path) -> None:
    def function(a: Any, x: Any) -> Any:
        return tn.fori_loop(1, a.shape[0], UPDATES["in_an_inner_loop"], a * x)

    a = np.random.default_rng(3).standard_normal(60)
    jitted = tn.jit(function)
    wanted = jitted(a, 0.5)
    jitted.plan(a, 0.5).save(tmp_path / "loop.plan")
    loaded = tn.load(tmp_path / "loop.plan")
    assert loaded(a, 0.5).tobytes() == wanted.tobytes()


def test_loops_that_get_no_function_say_why() -> None:
    def few(x: Any) -> Any:
        return tn.fori_loop(0, 5, lambda i, x: x * 2, x)

    def host(x: Any) -> Any:
        return tn.fori_loop(0, 50, lambda i, x: np.linalg.inv(x), x)

    def long(x: Any) -> Any:
        return tn.fori_loop(0, 50, lambda i, x: np.sin(x), x)

    reasons = [
        *native_loops(BACKEND.plan(tn.trace(few, 1.0))).values(),
        *native_loops(BACKEND.plan(tn.trace(host, np.eye(30)))).values(),
        *native_loops(BACKEND.plan(tn.trace(long, np.ones(10_000)))).values(),
    ]
    assert len(reasons) == 3
    assert all(reasons)
    assert "rounds" in reasons[0]
    assert "elements" in reasons[2]
    assert reasons[0] in BACKEND.plan(tn.trace(few, 1.0)).explain()
    many = tn.jit(lambda x: tn.fori_loop(0, 50, lambda i, x: x * 2, x))
    assert "one native function" in many.plan(1.0).explain()
    many = tn.jit(lambda x: tn.fori_loop(0, 50, lambda i, x: _long(x), x))
    assert "its code would be long" in many.plan(1.0).explain()


def _long(x: Any) -> Any:
    """Much, for one kernel."""
    for n in range(12):
        x = np.sin(np.cos(np.tanh(x + n)))
    return x
