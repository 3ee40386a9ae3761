"""Plans on an adapter: loops, branches, host steps, memory that is moved, several callers."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.webgpu.backend import BACKEND
from tenfold.backends.webgpu.native.device import Device
from tenfold.backends.webgpu.probe import opened
from tenfold.backends.webgpu.run import execute, record
from tenfold.backends.webgpu.run import kernels as run_kernels
from tenfold.backends.webgpu.run import program as run_program
from tenfold.backends.webgpu.run.kernels import Kernels
from tenfold.backends.webgpu.run.program import WebGPUProgram, release_rooms
from tenfold.backends.webgpu.run.record import which_round
from tenfold.errors import Unsupported
from tenfold.parity.certificate import Certificate
from tenfold.parity.check import check
from tests.backends.webgpu.here import needs_adapter

pytestmark = needs_adapter

X = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)


def agrees(function: Callable[..., Any], *arrays: Any) -> WebGPUProgram:
    """The program of a function, whose plan was judged in full, and whose calls give what the whole
    plan gave."""
    given = [np.asarray(a) for a in arrays]
    graph = tn.trace(function, *arrays)
    program = BACKEND.compile(graph)
    assert isinstance(program, WebGPUProgram)
    found = check(program, graph, [a.copy() for a in given], limit=None, every=True)
    assert isinstance(found.verdict, Certificate), str(found.verdict)
    assert found.made is not None
    for _ in range(2):
        for got, wanted in zip(program([a.copy() for a in given]), found.made, strict=True):
            np.testing.assert_array_equal(got, wanted)
    return program


def recurrence(reverse: bool, dtype: str = "f4") -> Callable[[Any], Any]:
    def step(c: Any, row: Any) -> Any:
        return c * 0.5 + row, (c.sum(), row > c)

    return lambda x: tn.scan(step, np.zeros(x.shape[1], dtype), x, reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("width", [8, 3, 1])
def test_rounds_have_their_parts_of_arrays(reverse: bool, width: int) -> None:
    """Also where these begin amid words."""
    agrees(recurrence(reverse), X[:9, :width].copy())
    agrees(recurrence(reverse, "f2"), X[:9, :width].astype(np.float16))


def test_a_loop_of_no_rounds_gives_what_it_was_given() -> None:
    agrees(recurrence(False), X[:0])
    agrees(lambda x: tn.while_loop(lambda c: c.sum() < -1e9, lambda c: c + 1, x), X)


@pytest.mark.parametrize("rounds", [1, 2, 3, 7])
def test_carries_change_places(rounds: int) -> None:
    agrees(lambda x: tn.fori_loop(0, rounds, lambda i, c: (c[1], c[0]), (x, x * 2)), X)
    agrees(lambda x: tn.fori_loop(0, rounds, lambda i, c: (c[1] + i, c[0]), (x[0], x[1])), X)


def test_which_of_three_a_round_is() -> None:
    assert [which_round(n) for n in range(5)] == [0, 1, 2, 1, 2]


def test_whiles_and_branches() -> None:
    def f(x: Any) -> Any:
        def body(c: Any) -> Any:
            return tn.cond(c.max() > 3, lambda v: v * 1.5, lambda v: v + 1, c)

        return tn.while_loop(lambda c: c.sum() < 150, body, x)

    agrees(f, X[:5])
    agrees(lambda i, x: tn.switch(i, [lambda v: v + 1, lambda v: v * 2, lambda v: -v], x), 2, X)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many values each wait for the device brought back."""
    found, own = list[int](), execute.Execution.read

    def read(self: Any, wanted: Any) -> Any:
        found.append(len(wanted))
        return own(self, wanted)

    monkeypatch.setattr(execute.Execution, "read", read)
    return found


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"])
def test_all_branches_are_sent(dtype: str, waits: list[int]) -> None:
    """A gate lets one through, by an index that is clamped; nobody waits for it."""

    def f(i: Any, x: Any) -> Any:
        return tn.switch(i[1], [lambda v: v + 1, lambda v: np.sort(v * 2, axis=0), lambda v: v], x)

    program = BACKEND.compile(tn.trace(f, np.zeros(2, dtype), X))
    of = np.iinfo(dtype) if dtype != "?" else None
    some = {0, 1} if of is None else {0, 1, 2, 3, 100, of.min, of.max, of.min // 2, of.max // 2}
    some |= {1 << 32, (1 << 32) + 1, -(1 << 32)} if dtype == "i8" else set()
    for index in sorted(some):
        waits.clear()
        (made,) = program([np.array([0, index], dtype), X])
        wanted = (X + 1, np.sort(X * 2, axis=0), X)[min(max(index, 0), 2)]
        np.testing.assert_array_equal(made, wanted)
        assert waits == [1]


def test_gates_stand_behind_gates(waits: list[int]) -> None:
    """Branches in branches, in rounds of loops, and rounds in branches."""

    def f(i: Any, x: Any) -> Any:
        def rest(v: Any) -> Any:
            return tn.cond(i > 1, lambda w: tn.fori_loop(0, 3, lambda n, y: y * 2 + n, w),
                           lambda w: w - 1, v)  # fmt: skip

        def body(c: Any) -> Any:
            n, v = c
            return n + 1, tn.switch(n - i, [rest, lambda w: w + 3, rest], v)

        first = tn.switch(i, [lambda v: v, rest, rest], x)
        return tn.while_loop(lambda c: c[0] < 5, body, (np.int32(0), first))

    program = agrees(f, np.int32(1), X)
    for index in range(4):
        waits.clear()
        wanted = tn.jit(f)(np.int32(index), X)
        for got, want in zip(program([np.int32(index), X]), wanted, strict=True):
            np.testing.assert_array_equal(got, want)
        assert len(waits) == 4  # for 1, 2 and 4 rounds, and for results


def test_a_branch_that_is_waited_for(waits: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the host has a part in one of them, or there would be too much in vain."""

    def f(i: Any, x: Any) -> Any:
        def inner(v: Any) -> Any:
            return tn.cond(i > 1, lambda w: w + 1, lambda w: w - 1, v)

        return tn.switch(i, [lambda v: np.linalg.cholesky(v @ v.T), inner, inner], x)

    square = X[:8] + 3 * np.eye(8, dtype=np.float32)
    program = agrees(f, 0, square)
    for index, wanted in ((1, square - 1), (2, square + 1)):
        waits.clear()
        np.testing.assert_array_equal(program([np.int64(index), square])[0], wanted)
        assert waits == [1, 1]  # the outer index, and the result
    monkeypatch.setattr(record, "IN_VAIN", 0)
    program = BACKEND.compile(tn.trace(lambda i, x: tn.cond(i, np.sin, np.cos, x), True, X))
    waits.clear()
    program([np.bool_(True), X])
    assert waits == [1, 1]


def test_a_call_with_branches_returns_at_once(waits: list[int]) -> None:
    jitted = tn.jit(lambda i, x: tn.cond(i, np.sin, np.cos, x), backend="webgpu", keep=True)
    x = tn.device_put(X, "webgpu")
    jitted(np.bool_(True), x)
    waits.clear()
    made = [jitted(np.bool_(on), x) for on in (True, False)]
    assert not waits
    for got, function in zip(made, (np.sin, np.cos), strict=True):
        np.testing.assert_allclose(got.numpy(), function(X), rtol=1e-5)


def test_a_fault_in_a_branch() -> None:
    def f(i: Any, x: Any) -> Any:
        return tn.cond(i < 90, lambda v: np.take(v, i, axis=0), lambda v: v[0] * 2, x)

    jitted = tn.jit(f, backend="webgpu")
    np.testing.assert_array_equal(jitted(np.int64(3), X), X[3])
    np.testing.assert_array_equal(jitted(np.int64(99), X), X[0] * 2)  # is not looked for there
    with pytest.raises(IndexError, match="77") as error:
        jitted(np.int64(77), X)
    assert "test_run.py" in str(error.value)


@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 6, 7, 8, 100])
def test_rounds_are_sent_before_they_are_wanted(rounds: int) -> None:
    def f(x: Any) -> Any:
        return tn.while_loop(lambda c: c[0] < rounds, lambda c: (c[0] + 1, c[2] * 0.9, c[1]),
                             (np.int32(0), x, x + 1))  # fmt: skip

    agrees(f, X)


def test_loops_nest() -> None:
    def inner(i: Any, c: Any) -> Any:
        return tn.while_loop(lambda d: d.sum() < i * 3.0, lambda d: d + 1.0, c * 0)

    agrees(lambda x: tn.fori_loop(0, 5, inner, x[0]), X)

    def rows(c: Any, row: Any) -> Any:
        return tn.scan(lambda d, v: (d + v, d * v), c, row)

    agrees(lambda x: tn.scan(rows, np.float32(0), x), X[:5])


def test_many_dispatches_are_sent_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "SENT", 3)
    monkeypatch.setattr(execute, "MARKED", 2)
    agrees(recurrence(False), X)


def test_ctrl_c_is_heard_though_much_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is asked, and never left to wait by itself: it would be deaf."""
    monkeypatch.setattr(execute, "SENT", 3)
    program = BACKEND.compile(tn.trace(recurrence(False), X))
    assert isinstance(program, WebGPUProgram)
    wgpu, own, asked, submitted = program.device.wgpu, Device.wait, list[int](), 0

    def poll(device: int, waits: int, index: Any, real: Any = wgpu.DevicePoll) -> Any:
        asked.append(waits)
        return real(device, waits, index)

    monkeypatch.setattr(wgpu, "DevicePoll", poll)
    (wanted, *_), room = program([X]), program.rooms[0].room
    assert asked
    assert not any(asked)
    assert room.submitted > 3 * execute.MARKED * execute.AHEAD
    assert not room.marks

    def wait(self: Device, done: Callable[[], bool], what: str) -> None:
        nonlocal submitted
        submitted = room.submitted
        raise KeyboardInterrupt

    before = room.submitted
    monkeypatch.setattr(Device, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        program([X])
    assert submitted - before <= execute.MARKED * (execute.AHEAD + 1)
    monkeypatch.setattr(Device, "wait", own)
    np.testing.assert_array_equal(program([X])[0], wanted)


def test_results_come_back_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "PIECE", 64)
    agrees(lambda x: (x + 1, x[:, 0] > 0, x.sum()), X)


@pytest.mark.parametrize("dtype", ["i1", "u2", "?", "f2", "f4", "c8"])
def test_ranges_begin_anywhere(dtype: str) -> None:
    """Concatenated and updated parts: kernels write from amid what is bound."""
    x = (X * 3).astype(dtype)
    agrees(lambda x: np.concatenate([x[:, :3], x[:5].T, x[:8, 1:2]], axis=1), x[:8])

    def updated(x: Any) -> Any:
        x = x * 1
        x[1:, 3:] = x[:-1, :-3]
        x[0] = x[1]
        return x

    agrees(updated, x)


def test_an_alignment_beyond_that_of_slots() -> None:
    """As some adapters have it: everything in an arena begins amid what is bound."""
    found = opened()
    target = replace(found.target, alignment=256)

    def f(x: Any) -> Any:
        y = np.sort(np.tanh(x), axis=0)
        z = np.sort(y[:3] > 0, axis=1)
        return np.concatenate([y * 2, np.sort(x, axis=1)])[1:] + 1, z, y.sum(axis=1)

    graph = tn.trace(f, X)
    kernels = Kernels(found.device, target, False)
    program = WebGPUProgram(BACKEND.plan(graph, target=target), kernels, BACKEND)
    verdict = check(program, graph, [X], limit=None, every=True).verdict
    assert isinstance(verdict, Certificate), str(verdict)


def test_the_cpu_does_what_reaches_more_than_is_shown() -> None:
    found = opened()
    target = replace(found.target, storage_bytes=10240)

    def f(x: Any, i: Any) -> Any:
        y = np.tanh(x) + 1  # shown as a whole
        wide = np.broadcast_to(y[:, None], (40, 9, 8)) * 2.0
        wide[3:, 2] = y[3:]
        return wide, wide.sum(axis=(0, 1)), np.concatenate([wide, wide], axis=1)[:, ::2], y[i]

    graph, i = tn.trace(f, X, np.array([1, 2])), np.array([3, -1])
    kernels = Kernels(found.device, target, False)
    program = WebGPUProgram(BACKEND.plan(graph, target=target), kernels, BACKEND)
    verdict = check(program, graph, [X, i], limit=None, every=True).verdict
    assert isinstance(verdict, Certificate), str(verdict)
    said = "\n".join(program.remarks())
    assert "by the CPU: it touches an array of 0 MiB" in said
    assert said.count("by the CPU") < len(program.code)
    left = list(program.fallbacks())
    assert all("0 MiB" in why and "test_run.py" in str(line) for _, why, line in left)
    assert {"broadcast_to", "concatenate"} & {op for op, _, _ in left}
    with pytest.raises(IndexError, match="77"):
        program([X, np.array([77, 0])])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("rows", "width"), [(40, 300), (3, 2500), (7, 1)])
def test_rounds_have_parts_of_what_is_not_shown_as_a_whole(
    rows: int, width: int, reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, own = opened(), Device.bind_group

    def bind_group(self: Device, kinds: Any, ranges: Any) -> Any:
        assert all(one.size <= 8192 for one in ranges)
        return own(self, kinds, ranges)

    monkeypatch.setattr(Device, "bind_group", bind_group)
    target = replace(found.target, storage_bytes=8192)
    x = np.random.default_rng(1).standard_normal((rows, width)).astype(np.float32)

    def f(x: Any) -> Any:
        return tn.scan(lambda c, row: (c + row[:2].sum(), row * c), np.float32(1), x,
                       reverse=reverse)  # fmt: skip

    graph = tn.trace(f, x)
    kernels = Kernels(found.device, target, False)
    program = WebGPUProgram(BACKEND.plan(graph, target=target), kernels, BACKEND)
    verdict = check(program, graph, [x], limit=None, every=True).verdict
    assert isinstance(verdict, Certificate), str(verdict)
    assert len(program.plan.plans) == 1


@pytest.mark.parametrize("most", [8, 10, 16])
def test_kernels_touch_no_more_arrays_than_an_adapter_shows(most: int) -> None:
    target = replace(opened().target, storage_buffers=most)

    def f(*given: Any) -> Any:
        parts = [a * n for n, a in enumerate(given)]
        return sum(given) * 2, [parts[0] + n for n in range(20)], np.concatenate(parts)

    arrays = [X[:7] + n for n in range(23)]
    graph = tn.trace(f, *arrays)
    plan = BACKEND.plan(graph, target=target)
    assert 2 < max(len(kernel.buffers) for kernel in plan.kernels) <= most - 4
    program = WebGPUProgram(plan, Kernels(opened().device, target, False), BACKEND)
    assert not list(program.fallbacks())
    verdict = check(program, graph, arrays, limit=None, every=True).verdict
    assert isinstance(verdict, Certificate), str(verdict)


def test_what_the_cpu_does_is_fetched_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All arrays of a kernel that touches more than an adapter shows, by one wait."""
    found, own, reads = opened(), Device.read, list[int]()

    def read(self: Device, staging: Any, parts: Any) -> None:
        reads.append(len(parts))
        own(self, staging, parts)

    def f(*given: Any) -> Any:
        return sum(given) * 2

    arrays = [X[:7] + n for n in range(9)]
    plan = BACKEND.plan(tn.trace(f, *arrays))  # for an adapter that shows more
    kernels = Kernels(found.device, replace(found.target, storage_buffers=8), False)
    program = WebGPUProgram(plan, kernels, BACKEND)
    assert [why for _, why, _ in program.fallbacks()] == [
        f"it touches 10 arrays, and {found.target.adapter} shows a kernel 4"
    ]
    monkeypatch.setattr(Device, "read", read)
    np.testing.assert_array_equal(program(arrays)[0], f(*arrays))
    assert reads == [10 + 1, 1 + 1]  # and the word of faults


def test_the_cpu_does_what_no_schedule_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be found when the text is made, not before."""
    found, own = opened(), run_kernels.prepare

    def prepare(call: Any, *rest: Any) -> Any:
        if any(i.op == "tanh" for i in call.kernel.instructions):
            raise Unsupported("more rounds than an invocation has")
        return own(call, *rest)

    monkeypatch.setattr(run_kernels, "prepare", prepare)
    graph = tn.trace(lambda x: np.sort(np.tanh(x), axis=0) + 1, X)
    program = WebGPUProgram(
        BACKEND.plan(graph), Kernels(found.device, found.target, False), BACKEND
    )
    verdict = check(program, graph, [X], limit=None, every=True).verdict
    assert isinstance(verdict, Certificate), str(verdict)
    assert [why for _, why, _ in program.fallbacks()] == ["more rounds than an invocation has"]


def test_a_plan_that_is_quicker_on_the_cpu_says_so() -> None:
    large = np.zeros((2000, 2000), np.float32)

    def said(function: Callable[..., Any], *arrays: Any) -> str:
        return tn.jit(function, backend="webgpu").plan(*arrays).explain()

    few = "likely quicker on the CPU"
    assert few in said(lambda x: np.tanh(x) + 1, X)
    assert few not in said(lambda x: np.tanh(x) + 1, large)
    assert few in said(lambda x: tn.fori_loop(0, 3, lambda i, c: np.sin(c), x), X)
    assert few not in said(lambda x: tn.fori_loop(0, 3000, lambda i, c: np.sin(c), x), X)
    assert few not in said(lambda x: tn.while_loop(lambda c: c.sum() < 9, np.exp, x), X)
    assert few in said(lambda x: x @ x.T, X)


def test_the_host_does_what_shaders_do_not() -> None:
    program = agrees(lambda x: np.linalg.cholesky(x @ x.T) + x, X[:8])
    assert {step.op for step in program.plan.host_steps} == {"cholesky"}
    assert "in WGSL" in program.plan.host_steps[0].reason

    def odd(x: Any) -> Any:  # what has no whole words is written back to the last byte
        made = tn.call_host(np.logical_not, tn.spec(x.shape, "bool"), x > 0)
        return made | (x > 1)

    jitted = tn.jit(odd, backend="webgpu")
    for rows in (1, 3, 7):
        np.testing.assert_array_equal(jitted(X[:rows, 0]), ~(X[:rows, 0] > 0) | (X[:rows, 0] > 1))


def test_hooks_are_called_once_and_in_order() -> None:
    """A fault behind the first of them does not have it called again."""
    seen = list[Any]()

    def f(x: Any, i: Any) -> Any:
        y = x + 1
        tn.hook("first", y.sum(), lambda v: seen.append(float(v)))
        y = np.take(y, i, axis=0)
        tn.hook("second", y, lambda v: seen.append(np.array(v)))
        return y * 2

    jitted, index = tn.jit(f, backend="webgpu"), np.array([3, 1])
    jitted(X, index)
    seen.clear()
    np.testing.assert_array_equal(jitted(X, index), (X + 1)[index] * 2)
    assert len(seen) == 2
    np.testing.assert_array_equal(seen[1], (X + 1)[index])
    seen.clear()
    with pytest.raises(IndexError, match="41"):
        jitted(X, np.array([3, 41]))
    assert len(seen) == 1


def test_a_fault_names_its_line() -> None:
    jitted = tn.jit(lambda x, i: np.take(x, i, axis=0) + 1, backend="webgpu")
    good, bad = np.array([1, 2]), np.array([1, 400])
    jitted(X, good)
    with pytest.raises(IndexError, match="400") as error:
        jitted(X, bad)
    assert "test_run.py" in str(error.value)
    np.testing.assert_array_equal(jitted(X, good), X[good] + 1)


def test_a_fault_ends_a_loop() -> None:
    def f(x: Any) -> Any:
        def body(c: Any) -> Any:
            i, v = c
            return i + 7, v + np.take(x, i, axis=0)

        return tn.while_loop(lambda c: c[0] < 10**6, body, (np.int64(0), x[0]))

    program = BACKEND.compile(tn.trace(f, X))
    with pytest.raises(IndexError, match="42"):
        program([X])


def test_captures_are_sent_once() -> None:
    weights = X.copy()
    jitted = tn.jit(lambda x: x * weights, backend="webgpu")
    for scale in (1, 2, 3):
        np.testing.assert_array_equal(jitted(X * scale), X * scale * weights)


def test_arguments_are_updated() -> None:
    def f(x: Any) -> Any:
        x += 1
        return x.sum()

    jitted, x = tn.jit(f, backend="webgpu"), np.zeros(5, np.float32)
    for n in range(1, 4):
        assert jitted(x) == 5 * n
        np.testing.assert_array_equal(x, np.full(5, n))


def test_several_threads_at_once() -> None:
    graph = tn.trace(lambda x: (np.tanh(x) @ x.T).sum(axis=0), X)
    program = BACKEND.compile(graph)
    wanted = [program([X + n])[0] for n in range(4)]
    wrong = list[int]()

    def call(n: int) -> None:
        for _ in range(10):
            if not np.array_equal(program([X + n])[0], wanted[n]):
                wrong.append(n)

    threads = [threading.Thread(target=call, args=(n,)) for n in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def test_memory_is_given_back() -> None:
    program = BACKEND.compile(tn.trace(lambda x: x + 1, X))
    program([X])
    assert release_rooms() >= 2 * X.nbytes
    np.testing.assert_array_equal(program([X])[0], X + 1)


def test_what_is_kept_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_program, "KEPT", 1 << 20)
    release_rooms()
    programs = [
        BACKEND.compile(tn.trace(lambda x: x + 1, np.zeros(50_000 + n, np.float32)))
        for n in range(6)
    ]
    for n, program in enumerate(programs):
        np.testing.assert_array_equal(program([np.zeros(50_000 + n, np.float32)])[0], 1)
        assert run_program.kept_bytes() < 2 << 20  # and what comes back goes through as much
    assert release_rooms() > 400_000
    assert run_program.kept_bytes() == 0


def test_memory_of_loops_is_given_back_at_once() -> None:
    program = BACKEND.compile(tn.trace(recurrence(False), X))
    program([X])
    room = weakref.ref(program.rooms[0].room)
    gc.disable()
    try:
        release_rooms()
        assert room() is None
    finally:
        gc.enable()


def test_a_program_with_loops_waits_for_no_collector() -> None:
    """Nor does its memory, also that of loops whose end the data says, and of branches."""

    def f(x: Any) -> Any:
        y = tn.while_loop(lambda c: c.sum() < 150, lambda c: np.abs(c) * 2 + 1, x)
        return tn.cond(y.max() > 3, lambda v: v * 1.5, lambda v: v + 1, y)

    for function in (recurrence(False), f):
        program: Any = BACKEND.compile(tn.trace(function, X))
        program([X])
        gone = [weakref.ref(program.rooms[0].room), weakref.ref(program)]
        gc.disable()
        try:
            del program
            assert [one() for one in gone] == [None, None]
        finally:
            gc.enable()


def test_the_host_is_called() -> None:
    def f(x: Any) -> Any:
        return tn.call_host(lambda v: v * 2, tn.spec(x.shape, x.dtype), x + 1) + 1

    jitted = tn.jit(f, backend="webgpu")
    for _ in range(2):
        np.testing.assert_array_equal(jitted(X), (X + 1) * 2 + 1)
