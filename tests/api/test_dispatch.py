"""Which calls native code answers, which stay out of Python's slow path, and what is let go."""

from __future__ import annotations

import gc
import os
import sys
import threading
import tracemalloc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import pages_held

import tenfold as tn
from tenfold.backends.cpu.link.loader import route
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.cache import plans
from tenfold.cache.memory import Plans
from tenfold.errors import TenfoldError

pytestmark = pytest.mark.filterwarnings("ignore::tenfold.errors.RecompileWarning")

X = np.arange(24.0).reshape(4, 6)


class SlowCalls:
    """How many calls Python has bound and looked up."""

    def __call__(self) -> int:
        found: Any = tn.stats()["slow_calls"]
        return int(found)

    def reset(self) -> None:
        tn.stats.reset()


@pytest.fixture
def slow_calls() -> SlowCalls:
    return SlowCalls()


def same(f: Any, *args: Any) -> None:
    """It gives what the function gives, bit for bit."""
    np.testing.assert_array_equal(f(*args), f.__wrapped__(*args))


def test_many_signatures_are_found_by_type(slow_calls: SlowCalls) -> None:
    f = tn.jit(lambda x: x * 2 + 1)
    arrays = [np.arange(float(n)) for n in range(12)]
    arrays += [a.astype("f4") for a in arrays] + [np.array(2.0)]
    for x in arrays:
        same(f, x)
    slow_calls.reset()
    for _ in range(3):
        for x in arrays:
            same(f, x)
            assert f(x).dtype == x.dtype
    assert slow_calls() == 0


def test_calls_with_containers_and_numbers_are_found_by_type_too(slow_calls: SlowCalls) -> None:
    f = tn.jit(lambda p, n: {"sum": p["a"] + p["b"][0] * n})
    calls = [({"a": np.ones(n), "b": [np.ones(n)]}, 2.5) for n in range(1, 12)]
    for call in calls:
        f(*call)
    slow_calls.reset()
    for p, n in calls:
        np.testing.assert_array_equal(f(p, n)["sum"], p["a"] + p["b"][0] * n)
    assert slow_calls() == 0
    assert f(calls[0][0], 3)["sum"].tolist() == [4.0]  # another kind of number: another trace
    assert slow_calls()


def test_refreshing_does_not_leave_calls_slow(slow_calls: SlowCalls) -> None:
    f = tn.jit(lambda x: x * 2)
    f(X)
    f.refresh()
    f(X)
    slow_calls.reset()
    same(f, X)
    assert slow_calls() == 0


def test_a_list_of_captured_arrays_is_looked_at_in_each_call(slow_calls: SlowCalls) -> None:
    weights = [np.ones(6), np.full(6, 3.0)]
    f = tn.jit(lambda x: x * weights[0] + weights[1])
    same(f, X)
    slow_calls.reset()
    same(f, X)
    assert slow_calls() == 0
    weights[1] = np.full(6, 5.0)  # another array of its type
    same(f, X)
    same(f, X)
    slow_calls.reset()
    same(f, X)
    assert slow_calls() == 0
    assert f.traces == 1
    weights[0] = np.ones((1, 6))
    same(f, X)
    assert f.traces == 2


def test_a_setting_that_goes_back_and_forth_is_not_looked_up(slow_calls: SlowCalls) -> None:
    settings = {"scale": 2.0}
    f = tn.jit(lambda x: x * settings["scale"])
    two, three = 2.0, 3.0
    for value in (two, three, two, three):
        settings["scale"] = value
        same(f, X)
    slow_calls.reset()
    for value in (two, three, two, three):
        settings["scale"] = value
        same(f, X)
    assert slow_calls() == 0
    assert f.traces == 2


@pytest.mark.parametrize(
    "x",
    [
        np.asfortranarray(X),
        X[:, ::2],
        X[::-1],
        X.T,
        np.broadcast_to(np.ones(6), (4, 6)),
        np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float64).reshape(4, 6),
        np.empty((4, 0)).T,
    ],
    ids=["fortran", "strided", "reversed", "transposed", "broadcast", "unaligned", "empty"],
)
def test_arrays_that_are_not_contiguous_are_packed_on_the_way(
    x: Any, slow_calls: SlowCalls
) -> None:
    f = tn.jit(lambda x: x * 2 + 1)
    same(f, x)
    slow_calls.reset()
    same(f, x)
    assert slow_calls() == 0


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_subclass_is_not_taken_for_an_array(slow_calls: SlowCalls) -> None:
    f = tn.jit(lambda x: x * x)
    square = np.arange(9.0).reshape(3, 3)
    for given in (np.ma.masked_array(square, square > 4), np.asmatrix(square)):
        f(square)
        f(square)
        slow_calls.reset()
        with pytest.raises(TenfoldError):
            f(given)
        assert slow_calls()


def test_a_donated_array_that_is_not_contiguous_is_updated_too() -> None:
    @tn.jit(donate="x")
    def f(x: Any) -> Any:
        x[0] = 7.0
        return x

    for _ in range(3):
        given = np.asfortranarray(X)
        assert f(X.copy())[0].tolist() == [7.0] * 6
        assert f(given)[0].tolist() == [7.0] * 6
        np.testing.assert_array_equal(given[0], 7.0)
        np.testing.assert_array_equal(given[1:], X[1:])


# Every signature stays on the native path.


def test_forty_signatures_and_a_refresh_leave_none_slow(slow_calls: SlowCalls) -> None:
    w = np.full(1, 3.0)
    f = tn.jit(lambda x: x * w + 1, verify="off")
    arrays = [np.arange(float(n)) for n in range(40)]
    for _ in range(2):
        for x in arrays:
            same(f, x)
        slow_calls.reset()
        for x in arrays:
            same(f, x)
        assert slow_calls() == 0
        w[:] = 5.0
        f.refresh()


def test_a_refresh_without_captures_costs_no_slow_call(slow_calls: SlowCalls) -> None:
    f = tn.jit(lambda x: x * 2, verify="off")
    for n in (3, 4):
        f(np.ones(n))
    f.refresh()
    slow_calls.reset()
    for n in (3, 4):
        same(f, np.ones(n))
    assert slow_calls() == 0


def test_static_values_keywords_and_containers_of_many_forms(slow_calls: SlowCalls) -> None:
    @tn.jit(static="times", verify="off")
    def f(x: Any, tree: Any = None, *, times: int = 1, scale: Any = 1.0) -> Any:
        y = x * times * scale
        return [y + leaf for leaf in tree] if tree else (y,) * times

    x = np.arange(3.0)

    def calls() -> Any:
        for times in range(1, 8):
            yield f(x, times=times), (x * times,) * times
            yield f(x=x, times=times, scale=2), (x * times * 2,) * times
            tree = [x + n for n in range(times)]
            yield f(x, tree), [x + leaf for leaf in tree]
            yield f(x, tree, scale=x), [x * x + leaf for leaf in tree]
            yield f(x, tuple(tree)), [x + leaf for leaf in tree]

    for _ in range(2):
        slow_calls.reset()
        for found, wanted in calls():
            assert type(found) is type(wanted)
            np.testing.assert_array_equal(found, wanted)
    assert slow_calls() == 0


def test_static_values_are_told_apart_by_type_and_bits(slow_calls: SlowCalls) -> None:
    @tn.jit(static="by", verify="off")
    def f(x: Any, by: Any) -> Any:
        return (np.copysign(x + 1, by) if type(by) is float else x + (by or 7)), type(by) is bool

    x = np.arange(3.0)
    values = [1, True, 1.0, 0, 0.0, -0.0, False, None, np.float32(1), 2.5, float("nan"), 1 + 0j]
    for _ in range(2):
        slow_calls.reset()
        for by in [*values, float("nan")]:
            found, wanted = f(x, by), f.__wrapped__(x, by)
            np.testing.assert_array_equal(found[0], wanted[0])
            assert found[1] is wanted[1]
    assert slow_calls() == 0
    assert f.traces == len(values)


def test_parameters_may_have_any_names(slow_calls: SlowCalls) -> None:
    f = tn.jit(
        lambda type, len, _r, _c0, __v1=1.0, call=2: (type[0] + len, _r * _c0 + __v1 * call),
        verify="off",
    )
    x = np.arange(3.0)
    for form in ({}, {"call": 3.0}, {"_c0": 4.0}):
        given = {"_r": 2.0, "_c0": 3.0} | form
        for _ in range(2):
            slow_calls.reset()
            found = f([x], x, **given)
        for one, wanted in zip(found, f.__wrapped__([x], x, **given), strict=True):
            np.testing.assert_array_equal(one, wanted)
        assert slow_calls() == 0


def test_numbers_of_numpy_and_arrays_without_axes_share_a_plan(slow_calls: SlowCalls) -> None:
    f = tn.jit(lambda x, y: x + y, verify="off")
    for kind in (np.float32, np.int16, np.bool_, np.complex128):
        f(np.ones(3, kind), np.array(1, kind))
    slow_calls.reset()
    for kind in (np.float32, np.int16, np.bool_, np.complex128):
        same(f, np.ones(3, kind), kind(1))
        same(f, np.ones(3, kind), np.array(1, kind))
    assert slow_calls() == 0


def test_what_no_plan_was_made_for_is_not_taken_for_what_one_was(slow_calls: SlowCalls) -> None:
    f = tn.jit(lambda x: x * 2, verify="off")
    for n in range(1, 6):
        f(np.ones(n))
    for x in (np.ones(3, ">f8"), np.ones((3, 1)), np.ones(3, "f4"), np.ones((0,)), 2.0):
        slow_calls.reset()
        np.testing.assert_array_equal(f(x), x * 2)
        assert slow_calls() == 1
    for bad in (np.array([None, 1]), object(), np.array(["a"]), np.ones(3, "M8[s]")):
        with pytest.raises(TypeError):
            f(bad)
    with pytest.raises(TypeError):
        f()
    with pytest.raises(TypeError):
        f(np.ones(2), y=1)


def test_donated_arrays_of_many_signatures(slow_calls: SlowCalls) -> None:
    @tn.jit(donate="x", verify="off")
    def f(x: Any, y: Any) -> Any:
        x += y
        return x.sum()

    def call(n: int) -> None:
        x = np.arange(float(n))
        assert f(x, 1.0) == (np.arange(float(n)) + 1).sum()
        np.testing.assert_array_equal(x, np.arange(float(n)) + 1)

    for n in range(1, 8):
        call(n)
    slow_calls.reset()
    for n in range(1, 8):
        call(n)
    assert slow_calls() == 0
    x = np.ones(4)
    with pytest.raises(tn.TenfoldError, match="shares memory"):
        f(x, x)


def test_a_plan_that_was_loaded_takes_containers_natively(
    slow_calls: SlowCalls, tmp_path: Path
) -> None:
    f = tn.jit(lambda p, n: {"y": p["a"] * n, "n": n + 1})
    given = {"a": np.arange(3.0)}
    f.plan(given, 2).save(tmp_path / "f.plan")
    loaded = tn.load(tmp_path / "f.plan", trust_code=True)
    for _ in range(2):
        slow_calls.reset()
        found = loaded(given, 2)
        np.testing.assert_array_equal(found["y"], given["a"] * 2)
        assert (found["n"], type(found["n"])) == (3, int)
    assert slow_calls() == 0
    with pytest.raises(TypeError, match="made for"):
        loaded({"a": np.ones(4)}, 2)


# What is let go.

FEW = 12
only_elf = pytest.mark.skipif(route() != "elf", reason="LLVM's loader counts for itself")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Plans:
    """The plans of this process, of which few are kept; no disk behind them."""
    monkeypatch.setattr(tn.config, "cache", None)
    plans.clear()
    monkeypatch.setattr(plans, "capacity", FEW)
    gc.collect()
    return plans


def programs_alive() -> int:
    return sum(isinstance(one, CompiledProgram) for one in gc.get_objects())


def mappings() -> int:
    return len(Path("/proc/self/maps").read_text().splitlines())


@only_elf
@pytest.mark.parametrize("kind", ["shapes", "settings", "containers"])
def test_what_is_dropped_is_freed_at_once(kind: str, few: Plans) -> None:
    state = {"scale": 0.0}
    f = tn.jit(lambda x, n=1: x * state["scale"] + 1, verify="off")

    def call(i: int) -> None:
        state["scale"] = float(i) if kind == "settings" else 1.0
        x = np.ones(3 if kind == "settings" else 3 + i)
        made = f(x, n=2.0) if kind == "containers" else f(x)
        np.testing.assert_array_equal(made, x * state["scale"] + 1)

    for i in range(2 * FEW):
        call(i)
    gc.collect()
    held, mapped, alive = pages_held(), mappings(), programs_alive()
    gc.disable()  # what takes a collection to free would pile up now
    try:
        for i in range(2 * FEW, 12 * FEW):
            call(i)
        assert len(few) == FEW
        assert programs_alive() <= alive + 1
        assert pages_held() <= held + 2
        assert mappings() <= mapped + 4
    finally:
        gc.enable()


def test_one_function_keeps_a_bounded_number_of_traces(
    monkeypatch: pytest.MonkeyPatch, few: Plans
) -> None:
    module = sys.modules["tenfold.api.traces"]
    monkeypatch.setattr(module, "TRACES", 5)
    monkeypatch.setattr(module, "ALIKE", 3)
    state = {"scale": 0.0}
    f = tn.jit(lambda x: x * state["scale"], compile="never")
    for i in range(40):
        state["scale"] = float(i % 8)
        same(f, np.ones(i // 4))
    assert len(f._traces) <= 5
    assert max(map(len, f._traces._kept.values())) <= 3
    same(f, np.ones(0))  # dropped long ago


def test_what_native_code_answers_by_is_not_dropped(
    monkeypatch: pytest.MonkeyPatch, few: Plans
) -> None:
    """Its calls do not come by, and count."""
    monkeypatch.setattr(sys.modules["tenfold.api.traces"], "TRACES", FEW)
    f = tn.jit(lambda x: x * 3 + 2, verify="off")
    for n in range(5 * FEW):
        same(f, np.ones(50 + n))
        same(f, X)
    assert f.traces == 5 * FEW + 1
    assert len(f._traces) == len(few) == FEW


def test_large_plans_count_for_more(monkeypatch: pytest.MonkeyPatch, few: Plans) -> None:
    monkeypatch.setattr(few, "nodes", 40)
    monkeypatch.setattr(sys.modules["tenfold.api.traces"], "NODES", 60)

    def waves(x: Any) -> Any:
        for _ in range(20):
            x = np.sin(x)
        return x

    f = tn.jit(waves, verify="off")
    for n in range(1, 6):
        f(np.ones(n))
    assert len(few) == 2
    assert len(f._traces) == 3
    monkeypatch.setattr(few, "nodes", 10)
    same(f, np.ones(9))
    assert len(few) == 1  # the newest stays, whatever it weighs


def test_ever_new_sizes_take_no_more_memory(monkeypatch: pytest.MonkeyPatch, few: Plans) -> None:
    monkeypatch.setattr(sys.modules["tenfold.api.traces"], "TRACES", FEW)

    def f(x: Any) -> Any:
        for _ in range(6):
            x = np.tanh(x - x.mean(axis=0)) * np.exp(x).sum(axis=1, keepdims=True)
        return x

    g = tn.jit(f, verify="off")

    def taken(first: int, count: int) -> int:
        for n in range(first, first + count):
            g(np.ones((n, 50)))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    taken(200, FEW)  # kernels are known by now
    tracemalloc.start()
    try:
        empty = taken(300, 0)
        filled = taken(300, FEW) - empty
        later = taken(400, 5 * FEW) - empty
    finally:
        tracemalloc.stop()
    assert later < 2 * filled


def test_a_program_that_is_dropped_while_it_runs_ends_its_run(few: Plans) -> None:
    seen: list[Any] = []

    def during(value: Any) -> None:
        few.clear()
        for i in range(2 * FEW):
            tn.jit(lambda x: x + 1, verify="off")(np.ones(50 + i))  # its pages would be taken
        gc.collect()
        seen.append(float(value[0]))

    f = tn.jit(lambda x: np.sort(tn.hook("h", np.exp(x), during) * 2), verify="off")
    x = np.linspace(1, 0, 40)
    np.testing.assert_allclose(f(x), np.sort(np.exp(x) * 2))
    np.testing.assert_allclose(f(x), np.sort(np.exp(x) * 2))
    assert len(seen) == 2


def test_a_function_that_is_dropped_takes_its_plans_along(few: Plans) -> None:
    f = tn.jit(lambda x: x * 17 + 5, verify="off")
    f(np.ones(5))
    (program,) = (weakref.ref(p) for _, p in few._held.values())
    del f
    few.clear()
    gc.collect()
    assert program() is None


def test_a_retired_program_is_not_called_again(few: Plans) -> None:
    f = tn.jit(lambda x: x * 3 + 1, verify="off")
    for _ in range(2):
        f(X)
    ((_, program),) = few._held.values()
    few.clear()
    program.retire()
    alive = weakref.ref(program)
    del program
    assert alive() is None
    same(f, X)
    assert len(few) == 1
    assert f.traces == 1


def test_threads_call_while_others_add_and_drop(few: Plans) -> None:
    """More signatures than are kept: plans come and go under the calls of other threads."""
    weights = [np.full(1, 2.0)]
    f = tn.jit(lambda x: x * weights[0] + 1, verify="off")
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        draw = np.random.default_rng(seed)
        try:
            for turn in range(150):
                x = np.ones(int(draw.integers(1, 3 * FEW)))
                assert f(x).tolist() == [3.0] * len(x)
                if seed == 0 and turn % 20 == 19:
                    f.refresh()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(f._dispatch) <= FEW
    child = os.fork()
    if child == 0:
        os._exit(0 if f(np.ones(2)).tolist() == [3.0, 3.0] else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif("TENFOLD_HAMMER" not in os.environ, reason="takes about half an hour")
@pytest.mark.parametrize("kind", ["shapes", "settings"])
def test_twenty_thousand_take_no_more_than_are_kept(kind: str) -> None:
    state = {"scale": 0.0}
    f = tn.jit(lambda x: np.exp(x) * state["scale"] + x.sum(), verify="off")
    counts = []
    for i in range(20_000):
        state["scale"] = float(i) if kind == "settings" else 1.0
        f(np.ones(8) if kind == "settings" else np.ones((1 + i // 500, 1 + i % 500)))
        if i % 1000 == 999 and i > plans.capacity:
            counts.append((mappings(), pages_held(), programs_alive()))
    assert all(b - a < 50 for a, b in zip(counts[0], counts[-1], strict=True))


def test_a_plan_that_native_code_answers_by_is_not_dropped(
    few: Plans, slow_calls: SlowCalls
) -> None:
    f = tn.jit(lambda x: x * 5 + 2, verify="off")
    often = np.ones(2)
    f(often)
    for n in range(3, 4 * FEW):
        f(np.ones(n))
        slow_calls.reset()
        same(f, often)
        assert slow_calls() == 0
