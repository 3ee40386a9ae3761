"""Running plans: outputs, loops, faults, host steps, threads, interruption."""

from __future__ import annotations

import os
import signal
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.errors import IndexProblem
from tenfold.reference import Callbacks, evaluate

Array = np.ndarray[Any, Any]
random = np.random.default_rng(4)


def some(*shape: int) -> Array:
    return random.standard_normal(shape).astype("f4")


def made(function: Any, *args: Any) -> CompiledProgram:
    return BACKEND.compile(tn.trace(function, *args))


def agrees(function: Any, *args: Any) -> list[Array]:
    program = made(function, *args)
    got = program(args)
    for mine, theirs in zip(got, evaluate(program.plan.graph, args), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
    return got


def test_outputs_alias_nothing() -> None:
    x, y = some(6), some(6)
    outputs = agrees(lambda x, y: (x, x, y, x + y, x.reshape(2, 3), (x + y).reshape(3, 2)), x, y)
    for i, output in enumerate(outputs):
        assert not np.shares_memory(output, x)
        assert not np.shares_memory(output, y)
        assert output.flags.writeable
        assert not any(np.shares_memory(output, other) for other in outputs[:i])


def test_constants_are_copied_out() -> None:
    (first,) = agrees(lambda x: np.array([1.0, 2.0, 3.0]), some(2))
    first[:] = 9
    assert agrees(lambda x: np.array([1.0, 2.0, 3.0]), some(2))[0][0] == 1


def test_strided_arguments_are_packed() -> None:
    x = some(20, 30)[::2, ::-3]
    got = made(lambda x: x.T * 2, some(10, 10))([x])
    np.testing.assert_array_equal(got[0], x.T * 2)


def test_carries_change_places() -> None:
    agrees(lambda x, y: tn.fori_loop(0, 5, lambda i, c: (c[1], c[0]), (x, y)), some(7), some(7))
    agrees(
        lambda x, y: tn.fori_loop(0, 4, lambda i, c: (c[1] + 1, c[0] * 2), (x, y)), some(7), some(7)
    )


@pytest.mark.parametrize("count", [0, 1, 2, 3, 8])
def test_scans_of_any_length(count: int) -> None:
    def function(x: Any, rows: Any) -> Any:
        return tn.scan(lambda c, r: (c * 0.5 + np.tanh(r), c.sum()), x, rows)

    agrees(function, some(5), some(count, 5))
    agrees(
        lambda x, rows: tn.scan(lambda c, r: (c + r, r), x, rows, reverse=True),
        some(5),
        some(count, 5),
    )


@pytest.mark.parametrize("limit", [-1.0, 0.5, 30.0, 1000.0])
def test_a_loop_of_no_turns_copies(limit: float) -> None:
    def function(x: Any) -> Any:
        return tn.while_loop(lambda c: np.abs(c).sum() < limit, lambda c: c * 1.5 + 1, x)

    x = some(4)
    (got,) = agrees(function, x)
    assert not np.shares_memory(got, x)


def test_branches() -> None:
    def function(x: Any, i: Any) -> Any:
        nested = tn.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, x)
        return nested, tn.switch(i, [lambda x: x + 1, lambda x: x * 3, lambda x: x * 0], x)

    for i in (-4, 0, 1, 2, 9):
        for sign in (1, -1):
            agrees(function, np.abs(some(9)) * sign, np.int32(i))


def test_loops_within_loops() -> None:
    def inner(c: Any) -> Any:
        return tn.while_loop(lambda s: s[1] < 3, lambda s: (np.tanh(s[0]) + s[1], s[1] + 1), (c, 0))

    agrees(lambda x: tn.fori_loop(0, 4, lambda i, c: inner(c)[0] + i, x), some(9))


def test_a_fault_names_the_line() -> None:
    program = made(lambda t, i: np.tanh(t[i]) * 2, some(5), np.arange(3))
    np.testing.assert_allclose(program([np.ones(5, "f4"), np.array([0, 4, -5])])[0][0], 1.5231884)
    for bad in ([0, 5, 1], [-6, 0, 0]):
        with pytest.raises(IndexProblem, match=r"out of range") as caught:
            program([some(5), np.array(bad)])
        assert "test_program.py" in str(caught.value)
    program([some(5), np.array([1, 2, 3])])  # it goes on working


def test_a_fault_inside_a_loop() -> None:
    program = made(
        lambda t, i: tn.fori_loop(0, 4, lambda k, c: c + t[i + k], np.float32(0)),
        some(6),
        np.int64(0),
    )
    program([some(6), np.int64(2)])
    with pytest.raises(IndexProblem, match="out of range"):
        program([some(6), np.int64(4)])


def test_host_steps_in_order() -> None:
    seen: list[Any] = []

    def function(x: Any) -> Any:
        tn.hook("first", x + 1)
        y = tn.fori_loop(0, 3, lambda i, c: _noted(c + i), x * 2)
        tn.hook("last", y)
        return np.sort(y)

    def _noted(c: Any) -> Any:
        tn.hook("turn", c)
        return c

    x = some(3)
    program = made(function, x)
    calls = {
        name: (lambda value, name=name: seen.append((name, np.array(value))))
        for name in ("first", "turn", "last")
    }
    (got,) = program([x], Callbacks((), calls))
    assert [name for name, _ in seen] == ["first", "turn", "turn", "turn", "last"]
    np.testing.assert_allclose(got, np.sort(x * 2 + 3), rtol=1e-6)
    np.testing.assert_allclose(seen[-1][1], x * 2 + 3, rtol=1e-6)


def test_a_raising_hook_reaches_the_caller() -> None:
    program = made(lambda x: (tn.hook("h", x), x * 2)[1], some(3))

    def fails(value: Any) -> None:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        program([some(3)], Callbacks((), {"h": fails}))
    program([some(3)], Callbacks((), {"h": None}))


def test_a_hook_may_call_its_own_program() -> None:
    x = some(3000)
    program = made(lambda x: (tn.hook("h", x * 2), np.sort(x * 2) + 1)[1], x)
    inner: list[Array] = []

    def again(value: Any) -> None:
        if not inner:
            inner.append(np.zeros(0))
            inner.extend(program([x], Callbacks((), {"h": None})))

    (outer,) = program([x], Callbacks((), {"h": again}))
    np.testing.assert_array_equal(outer, inner[1])


def test_many_threads() -> None:
    def function(x: Any, w: Any) -> Any:
        h = np.tanh(x @ w)
        return tn.fori_loop(0, 20, lambda i, c: np.sort(c * 0.9 + i), h).sum(0), h

    w = some(40, 40)
    program = made(function, some(30, 40), w)
    inputs = [some(30, 40) for _ in range(8)]
    wanted = [program([x, w]) for x in inputs]
    wrong: list[int] = []

    def work(n: int) -> None:
        for _ in range(10):
            for got, want in zip(program([inputs[n], w]), wanted[n], strict=True):
                if not np.array_equal(got, want):
                    wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_interruption() -> None:
    program = made(lambda x: tn.while_loop(lambda c: c[0] > -1, lambda c: c * 0 + 1, x), some(3))
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        program([np.ones(3, "f4")])
    timer.join()
    (got,) = program([np.full(3, -2, "f4")])
    assert got[0] == -2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork() -> None:
    x, w = some(30, 40), some(40, 40)
    program = made(lambda x, w: np.tanh(x @ w), x, w)
    wanted = program([x, w])[0]
    child = os.fork()
    if not child:
        os._exit(0 if np.array_equal(program([x, w])[0], wanted) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_replay_allocates_its_outputs_alone() -> None:
    x = some(200, 200)
    program = made(lambda x: np.tanh(np.sort(x.T) @ x) + (x @ x), x)
    call = program.bind(lambda *a: None).call
    plain = made(lambda x: np.tanh(x @ x) + (x @ x.T), x).bind(lambda *a: None).call
    assert program.plan.peak_bytes > 0
    for function, host in ((plain, 0), (call, 3 * x.nbytes)):
        function(x)
        tracemalloc.start()
        function(x)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak <= x.nbytes + host + 4096


def test_a_fault_behind_reshapes_is_what_the_evaluator_finds() -> None:
    def f(x: Any, y: Any) -> Any:
        return y[x[:, None][:, 0].min()]

    program = tn.jit(f, verify="off")
    assert program(np.array([2, 1]), np.arange(3)) == 1
    with pytest.raises(IndexError, match="index -33 is out of range"):
        program(np.array([2, -33]), np.arange(3))
    with pytest.raises(ValueError, match="negative power"):
        tn.jit(lambda x: 2 ** x[:, None][:, 0].min(), verify="off")(np.array([2, -3]))


def test_columns_of_which_something_is_kept_do_not_lie_across_lanes():
    """What the first loop over a column keeps for the second was kept of one column, while several
    lay across lanes. Whether they would, hangs on the costs of all of this."""
    graph = tn.parse(
        """graph (%0: f32[2580,7]) {
  %1 = iota {dtype='i32', shape=(2580, 1), axis=0} : i32[2580,1]
  %2 = erf %0 : f32[2580,7]
  %3 = isfinite %2 : bool[2580,7]
  %4 = constant {data=0xbb7313bf, type='f32'} : f32
  %5 = select %3 %2 %4 : f32[2580,7]
  %6 = bitcast %5 {dtype='i32'} : i32[2580,7]
  %7 = constant {data=0x00000080, type='i32'} : i32
  %8 = ne %6 %7 : bool[2580,7]
  %9 = constant {data=0x140a0000, type='i32'} : i32
  %10 = select %8 %1 %9 : i32[2580,7]
  %11 = reduce_min %10 {axes=(0,)} : i32[7]
  %12 = reshape %11 {shape=(1, 7)} : i32[1,7]
  %13 = lt %1 %12 : bool[2580,7]
  return %5 %13
}"""
    )
    x = np.random.default_rng(0).normal(size=(2580, 7)).astype("f4")
    got, wanted = BACKEND.compile(graph)([x]), evaluate(graph, [x])
    np.testing.assert_allclose(got[0], wanted[0], rtol=1e-6)
    np.testing.assert_array_equal(got[1], wanted[1])
