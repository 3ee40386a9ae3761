"""Arguments updated in place: for the caller all is as in the same function without jit."""

import signal
import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import MutationError

# -- the same as in NumPy: arguments after the call, and what the call gives


def nothing(a):
    a += 1


def whole(a):
    a *= 3
    return a


def twice(a):
    a -= 0.5
    return a, a


def middle(a, b):
    a[1:-1] = 0.5 * (b[:-2] + b[2:])


def first_of(a):
    a[0] = a[-1] * 2
    return a[0]


def out(a, b):
    return np.add(a, b, out=a)


def outs(a, b):
    np.multiply(a, 2, out=b)
    np.maximum(a, b, out=a)


def sort(a):
    a.sort()


def fill(a):
    a.fill(7)


def view_of(a):
    a += 1
    return a[1:], a.sum(), a


def swap(a, b):
    t = a.copy()
    a[:] = b
    b[:] = t


def before(a):
    old = a.copy()
    a += 1
    return old


def masked(a):
    a[a > 2] = 0


def by_index(a, i):
    a[i] = 0
    return a


def add_at(a, i):
    np.add.at(a, i, 1)


def not_written(a, b):
    b = b + a
    b += 1
    return b


def rebinds(a):
    a = a + 1
    a += 1
    return a


def same_value(a):
    a[...] = a


def both(a, b):
    a += b
    b *= a
    return b, a.mean()


A = np.linspace(-3.0, 5.0, 9)
B = np.arange(9.0) ** 2
I = np.array([0, 3, 3, -1])  # noqa: E741

CASES = {
    "nothing is returned": (nothing, A),
    "it is returned": (whole, A),
    "it is returned twice": (twice, A),
    "a range": (middle, A, B),
    "one element": (first_of, A),
    "out=": (out, A, B),
    "two outs": (outs, A, B),
    "sort": (sort, A[::-1].copy()),
    "fill": (fill, A),
    "a view of it is returned": (view_of, A),
    "two that are swapped": (swap, A, B),
    "what was there before": (before, A),
    "a mask": (masked, A),
    "an array of indices": (by_index, A, I),
    "add.at": (add_at, A, I),
    "another is only read": (not_written, A, B),
    "a name bound anew": (rebinds, A),
    "the same value": (same_value, A),
    "both of two": (both, A, B),
    "integers": (whole, np.arange(5)),
    "small integers": (nothing, np.array([0, 127, 255], np.uint8)),
    "bools": (masked, np.array([True, False])),
    "halves": (nothing, A.astype(np.float16)),
    "complex": (whole, A + 2j * A),
    "no axes": (whole, np.array(2.5)),
    "no axes, twice": (twice, np.array(2.5)),
    "no elements": (nothing, np.zeros((0, 3))),
    "two axes": (sort, np.array([[3.0, 1.0, 2.0], [0.0, -1.0, 5.0]])),
    "columns": (nothing, np.arange(24.0).reshape(4, 6)[:, ::2]),
    "reversed": (whole, np.arange(24.0).reshape(4, 6)[::-1, ::-1]),
    "Fortran": (view_of, np.asfortranarray(np.arange(24.0).reshape(4, 6))),
    "transposed": (sort, np.arange(24.0)[::-1].reshape(4, 6).T),
    "big-endian": (whole, np.arange(6).astype(">i4")),
    "big-endian floats": (first_of, A.astype(">f8")),
    "unaligned": (whole, np.zeros(25, np.uint8)[1:].view(np.float64)),
    "of a record": (nothing, np.zeros(4, [("a", "i1"), ("b", "f8")])["b"]),
    "large": (middle, np.zeros(200_000), np.arange(200_000.0)),
}

HOW = {
    "now": {},
    "never": {"compile": "never"},
    "background": {"compile": "background"},
    "strict": {"strict": True},
    "unchecked": {"verify": "off"},
    "always": {"verify": "always"},
    "donated": {"donate": "a"},
}


def laid_out_alike(array: Any) -> Any:
    """A copy with the same strides, in memory of its own."""
    if not isinstance(array, np.ndarray) or array.base is None:
        return np.copy(array, order="K") if isinstance(array, np.ndarray) else array
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    memory = np.array(base)
    return np.ndarray(array.shape, array.dtype, memory, offset, array.strides)


def same(got: Any, wanted: Any) -> None:
    assert type(got) is type(wanted)
    if isinstance(wanted, tuple):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            same(one, other)
    elif wanted is not None:
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype.newbyteorder("="))
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


def compare(jitted: Any, function: Any, given: Any, mine: Any) -> None:
    """One call beside NumPy's, on copies; results that are arguments are these very objects."""
    got, wanted = jitted(*given), function(*mine)
    for one, other in zip(given, mine, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.flags.writeable == other.flags.writeable
    parts = (
        [(got, wanted)] if not isinstance(wanted, tuple) else list(zip(got, wanted, strict=True))
    )
    for part, other in parts:
        for number, argument in enumerate(mine):
            if other is argument and function is not not_written:
                assert part is given[number]
            elif isinstance(part, np.ndarray):
                assert not np.may_share_memory(part, given[number]) or part is given[number]
    if not any(part is one for part, _ in parts for one in given):
        same(got, wanted)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("case", CASES)
def test_as_in_numpy(case, how):
    function, *arrays = CASES[case]
    jitted = tn.jit(function, **HOW[how])
    given, mine = [*map(laid_out_alike, arrays)], [*map(laid_out_alike, arrays)]
    for _ in range(4):  # by Python, then by native code
        compare(jitted, function, given, mine)
        jitted.ready(60)
    assert jitted.traces == 1


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("case", [c for c in CASES if "big-endian" not in c])
def test_a_loaded_plan_does_as_the_function_does(case, trusted, tmp_path):
    function, *arrays = CASES[case]
    plan = tn.jit(function).plan(*arrays)
    plan.save(tmp_path / "f.plan")
    loaded = tn.load(tmp_path / "f.plan", trust_code=trusted)
    for one in (plan, loaded):
        given, mine = [*map(laid_out_alike, arrays)], [*map(laid_out_alike, arrays)]
        for _ in range(3):
            compare(one, function, given, mine)


def test_repeated_calls_are_native():
    cases = [(middle, A, B), (whole, A), (nothing, A), (twice, A), (view_of, A), (both, A, B)]
    for function, *arrays in cases:
        jitted = tn.jit(function)
        given = [*map(np.copy, arrays)]
        jitted(*given)
        jitted.ready(60)
        jitted(*given)
        tn.stats.reset()
        for _ in range(5):
            jitted(*given)
        assert tn.stats()["slow_calls"] == 0, function.__name__


# -- what looks at a function writes nothing


def test_what_only_looks_writes_nothing(tmp_path):
    a, b = A.copy(), B.copy()
    for options in ({}, {"donate": "a"}):
        f = tn.jit(both, **options)
        f.warm(a, b)
        f.plan(a, b).save(tmp_path / "f.plan")
        f.trace(a, b)
        f.certificate(a, b)
        f.captures(a, b)
        assert tn.parity(f, a, b).agrees
        tn.bisect(f, a, b, script=None)
        tn.explain_cache(f, a, b)
        np.testing.assert_array_equal(a, A)
        np.testing.assert_array_equal(b, B)


def test_a_plan_says_what_it_updates():
    plan = tn.jit(lambda state, g: state["w"].__isub__(g)).plan({"w": A, "m": B}, A)
    assert "updates in place: state['w']" in plan.explain()
    assert "updates in place" not in tn.jit(lambda a: a + 1).plan(A).explain()


# -- containers


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class State:
    w: Any
    parts: list[Any]


def descend(state, pair, g):
    state.w -= g
    state.parts[1][0] += g[0]
    pair.right[...] = state.w
    return {"w": state.w, "same": pair, "sum": state.parts[1].sum()}


@pytest.mark.parametrize("how", HOW)
def test_arrays_in_containers(how):
    if how == "donated":
        pytest.skip("it has other parameters")
    f = tn.jit(descend, **HOW[how])
    given, mine = ((State(A.copy(), [B, B + 1]), Pair(A, B.copy()), A[::-1]) for _ in range(2))
    for _ in range(4):
        got, wanted = f(*given), descend(*mine)
        assert got["w"] is given[0].w
        assert got["same"].right is given[1].right
        assert got["sum"] == pytest.approx(wanted["sum"])
        np.testing.assert_array_equal(given[0].w, mine[0].w)
        np.testing.assert_array_equal(given[0].parts[1], mine[0].parts[1])
        np.testing.assert_array_equal(given[1].right, mine[1].right)
        f.ready(60)


def test_containers_themselves_are_not_changed():
    def sets(state, g):
        state["w"] = state["w"] - g

    def adds(state, g):
        state["new"] = g

    def removes(state, g):
        del state["w"]

    def appends(state, g):
        state["list"].append(g)

    def numbers(state, g):
        state["n"] += 1

    state = {"w": A.copy(), "list": [B.copy()], "n": 1}
    for f, name in (
        (sets, "state['w']"),
        (adds, "state['new']"),
        (removes, "state['w']"),
        (appends, "state['list'][1]"),
        (numbers, "state['n']"),
    ):
        with pytest.raises(tn.TenfoldError) as caught:
            tn.jit(f)(state, A)
        assert f"{name} is set, added or removed" in str(caught.value)
    np.testing.assert_array_equal(state["w"], A)

    def own(state, g):
        state = {**state, "w": state["w"] - g}
        state["new"] = g
        return state

    np.testing.assert_array_equal(tn.jit(own)(state, A)["w"], A * 0)


def test_arguments_by_name_and_many():
    def f(*arrays, scale=2.0, **named):
        for array in arrays:
            array *= scale
        named["z"] += 1
        return arrays[0]

    jitted = tn.jit(f)
    a, b, z = A.copy(), B.copy(), np.zeros(2)
    for count in range(1, 4):
        assert jitted(a, b, z=z, scale=3.0) is a
        np.testing.assert_allclose(b, B * 3.0**count)
        assert z.tolist() == [count, count]


# -- scalars and numbers


def step(t, dt):
    old = t
    t += dt
    return t - old


@pytest.mark.parametrize("how", ["now", "never"])
def test_scalars_are_bound_anew_and_arrays_updated(how):
    f = tn.jit(step, compile=how)
    for _ in range(3):
        t = np.float64(1.5)
        assert f(t, np.float64(0.25)) == 0.25
        assert t == 1.5
        t = np.array(1.5)
        assert f(t, np.float64(0.25)) == 0
        assert t == 1.75
        assert f(1.5, 0.25) == 0.25
        lazy = tn.asarray([1.0, 0.5]).sum()  # as NumPy's: a scalar
        assert f(lazy, 0.25) == 0.25
        assert lazy == 1.5


def test_scalars_that_are_bound_anew_stay_native():
    f = tn.jit(step)
    t = np.float64(1.5)
    f(t, t)
    f.ready(60)
    f(t, t)
    tn.stats.reset()
    for _ in range(5):
        f(t, t)
    assert tn.stats()["slow_calls"] == 0
    a = np.array(1.5)
    assert f(a, t) == 0
    assert a == 3


def test_a_plan_for_a_scalar_is_for_no_array(tmp_path):
    plan = tn.jit(step).plan(np.float64(1), np.float64(1))
    plan.save(tmp_path / "f.plan")
    for one in (plan, tn.load(tmp_path / "f.plan")):
        for _ in range(3):
            assert one(np.float64(1), np.float64(2)) == 2
            with pytest.raises(tn.TenfoldError, match="made for a scalar"):
                one(np.array(1.0), np.float64(2))


def test_items_of_scalars_and_numbers_are_not_set():
    def f(x):
        x[...] = 1
        return x

    for x in (np.float32(2), 2.0, 3, True):
        with pytest.raises(tn.TenfoldError, match="no array"):
            tn.jit(f)(x)


def test_types_stay_as_in_numpy():
    with pytest.raises(TypeError):
        tn.jit(lambda a: a.__iadd__(0.5))(np.arange(3))
    with pytest.raises(TypeError):
        tn.jit(lambda a, b: a.__iadd__(b))(np.ones(1), np.ones(3))
    a = np.ones(3, np.float32)
    tn.jit(lambda a, b: a.__iadd__(b))(a, np.full(3, 2.5))
    assert (a.dtype, a.tolist()) == (np.float32, [3.5] * 3)


# -- other kinds of arrays


def test_the_handle_of_a_lazy_array_moves_on():
    def f(x, y):
        x += y
        return x, x * 2

    jitted = tn.jit(f)
    for _ in range(3):
        x = tn.asarray(A) + 0
        alias = x
        got, double = jitted(x, B)
        assert got is x
        np.testing.assert_array_equal(np.asarray(alias), A + B)
        np.testing.assert_array_equal(np.asarray(double), (A + B) * 2)
    with pytest.raises(tn.TenfoldError, match="shares memory with the argument 'y'"):
        jitted(x, x)


class Tensor:
    """An array of a library that NumPy takes by DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Legacy(Tensor):
    """One whose DLPack does not say whether it may be written to: NumPy takes it read-only."""

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


def test_arrays_of_other_libraries():
    jitted = tn.jit(whole)
    for count in range(1, 4):
        given = Tensor(A.copy())
        assert jitted(given) is given
        np.testing.assert_array_equal(given.array, A * 3)
        with pytest.raises(tn.TenfoldError, match="read-only"):
            jitted(Legacy(A.copy()))
        with pytest.raises(tn.TenfoldError, match="shares memory"):
            tn.jit(out)(given, given.array)
        assert count


def test_memory_maps_are_written(tmp_path):
    given = np.memmap(tmp_path / "a", float, "w+", shape=(9,))
    given[:] = A
    jitted = tn.jit(whole)
    for count in range(1, 4):
        assert jitted(given) is given
        np.testing.assert_allclose(np.fromfile(tmp_path / "a"), A * 3.0**count)


def test_lists_are_containers_of_numbers():
    with pytest.raises(TypeError):  # as in Python
        tn.jit(nothing)([1.0, 2.0])


# -- what is refused


@pytest.mark.parametrize("how", ["now", "never", "background"])
def test_arguments_that_overlap_are_refused(how):
    f = tn.jit(out, compile=how)
    a = np.arange(20.0)
    for _ in range(3):
        for x, y in ((a, a), (a[:10], a[5:15]), (a[10:], a[1:11]), (a[::-1], a), (a[:9], a[:9])):
            with pytest.raises(
                tn.TenfoldError, match="updated in place and shares memory with the argument 'b'"
            ):
                f(x, y)
        assert a.tolist() == list(range(20))
        f(a[:10].copy(), a[:10])
        np.testing.assert_array_equal(f(a.copy()[::2], a[1::2]), np.arange(1.0, 40, 4))
        f(a.copy(), a)
        f.ready(60)


def test_overlap_of_arguments_that_are_only_read():
    f = tn.jit(lambda a, b, c: a.__iadd__(b * c))
    a = np.zeros(3)
    for count in range(1, 4):
        f(a, B[:3], B[:3])
        np.testing.assert_array_equal(a, B[:3] ** 2 * count)


def test_arrays_in_any_order_beside_one_that_is_updated():
    f = tn.jit(lambda a, b: a.__iadd__(b))
    a, b = np.zeros((6, 6)), np.arange(36.0).reshape(6, 6)
    f(a, b)
    f.ready(60)
    f(a, b)
    tn.stats.reset()
    for other in (b.T, b[::-1], np.arange(72.0).reshape(6, 12)[:, ::-2], b[:, :1] + b.T):
        want = a + other
        assert f(a, other) is a
        np.testing.assert_array_equal(a, want)
    assert tn.stats()["slow_calls"] == 0
    whole = np.arange(72.0).reshape(12, 6)
    for x, y in ((whole[:6], whole[:6].T), (whole[6:], whole[11:5:-1]), (whole[3:9], whole[::2])):
        with pytest.raises(tn.TenfoldError, match="shares memory"):
            f(x, y)
    np.testing.assert_array_equal(whole.reshape(-1), np.arange(72.0))
    want = whole[:6] + whole[6:].T
    np.testing.assert_array_equal(f(whole[:6], whole[6:].T), want)
    with pytest.raises(tn.TenfoldError):
        f(object(), b.T)


def test_an_argument_that_is_captured_too():
    w = np.ones(9)

    def f(a):
        a += w

    jitted = tn.jit(f)
    a = np.zeros(9)
    for _ in range(3):
        jitted(a)
        for given in (w, w[::-1]):
            with pytest.raises(tn.TenfoldError, match="shares memory with the captured array 'w'"):
                jitted(given)
    assert (w.tolist(), a.tolist()) == ([1] * 9, [3] * 9)


@pytest.mark.parametrize("how", ["now", "never"])
def test_read_only_arrays(how):
    f = tn.jit(nothing, compile=how)
    for _ in range(3):
        f(A.copy())
        fixed = A.copy()
        fixed.flags.writeable = False
        for given in (fixed, np.broadcast_to(A[:1], 9)):
            with pytest.raises(tn.TenfoldError, match="read-only"):
                f(given)
        strided = np.lib.stride_tricks.as_strided(A.copy(), (9,), (0,))
        with pytest.raises(tn.TenfoldError, match="in several places"):
            f(strided)


def test_a_captured_array_is_not_updated():
    w = tn.asarray(A)

    def f(a):
        w.__iadd__(a)

    with pytest.raises(tn.TenfoldError, match="from outside is updated"):
        tn.jit(f)(A)


# -- errors leave arguments as they were


def failing_hook(a):
    a += 1
    tn.hook("seen", a)
    return a


def failing_index(a, i):
    a += 1
    b = a[i]
    a *= 2
    return b


@pytest.mark.parametrize("how", HOW)
def test_an_index_out_of_range(how):
    f = tn.jit(failing_index, **HOW[how])
    a, mine = A.copy(), A.copy()
    f(A.copy(), np.array(1))
    for _ in range(3):
        with pytest.raises(IndexError):
            f(a, np.array(9))
        if how != "donated":
            np.testing.assert_array_equal(a, mine)
        a[:] = mine
        np.testing.assert_allclose(f(a, np.array(2)), failing_index(mine, np.array(2)))
        np.testing.assert_array_equal(a, mine)
        f.ready(60)


@pytest.mark.parametrize("how", ["now", "never", "background"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_hook_that_raises(how, error):
    def fail(_):
        raise error("stop")

    f = tn.jit(failing_hook, compile=how)
    a, mine = A.copy(), A.copy()
    for _ in range(3):
        with pytest.raises(error, match="stop"):
            f.with_hooks({"seen": fail})(a)
        np.testing.assert_array_equal(a, mine)
        assert f.with_hooks({"seen": lambda _: None})(a) is a
        failing_hook(mine)
        np.testing.assert_array_equal(a, mine)
        f.ready(60)


def test_a_host_call_that_raises():
    fails = []

    def host(x):
        if fails:
            raise ValueError("stop")
        return x * 2

    def f(a, b):
        a += 1
        b[:] = tn.call_host(host, tn.spec((9,), "float64"), a)
        a -= 3

    jitted = tn.jit(f)
    a, b = A.copy(), B.copy()
    for _ in range(3):
        fails.append(1)
        kept = a.copy(), b.copy()
        with pytest.raises(ValueError, match="stop"):
            jitted(a, b)
        np.testing.assert_array_equal((a, b), kept)
        fails.clear()
        jitted(a, b)
        np.testing.assert_array_equal(a, kept[0] - 2)
        np.testing.assert_array_equal(b, (kept[0] + 1) * 2)


class Picky(Pair):
    def __new__(cls, left, right):
        if isinstance(right, np.ndarray) and right[0] > 2:
            raise ValueError("too large")
        return super().__new__(cls, left, right)


def test_a_container_of_results_that_raises():
    def f(a):
        a += 1
        return Picky(a, a * 1)

    jitted = tn.jit(f)
    a = np.zeros(3)
    for value in (1, 2, 2, 2):
        if a[0] < 2:
            assert jitted(a).left is a
        else:
            with pytest.raises(ValueError, match="too large"):
                jitted(a)
        assert a.tolist() == [value] * 3


def test_ctrl_c_leaves_arguments_as_they_were():
    def f(a, n):
        a += 1
        a[:] = tn.fori_loop(0, n, lambda i, c: np.sin(c) * 1.5, a)

    jitted = tn.jit(f)
    a = np.linspace(0, 1, 5000)
    for _ in range(3):
        jitted(a, np.int64(2))
    mine = a.copy()
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        jitted(a, np.int64(1 << 40))
    timer.join()
    np.testing.assert_array_equal(a, mine)


# -- buckets, threads, other jits


def test_rows_that_are_padded():
    def f(x, y):
        x *= y
        return x, x.sum(axis=1)

    jitted = tn.jit(f, buckets={"x": [4], "y": [4]})
    for rows in (3, 4, 1, 0, 3):
        x = np.arange(rows * 2.0).reshape(rows, 2)
        y, mine = x + 1, x.copy()
        got, sums = jitted(x, y)
        assert got is x
        np.testing.assert_array_equal(x, mine * y)
        np.testing.assert_array_equal(sums, (mine * y).sum(axis=1))


def test_threads_update_their_own():
    f = tn.jit(middle)
    arrays = [(np.zeros(50_000), np.arange(50_000.0) + n) for n in range(6)]

    def run(a, b):
        for _ in range(30):
            f(a, b)

    threads = [threading.Thread(target=run, args=pair) for pair in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for a, b in arrays:
        np.testing.assert_array_equal(a[1:-1], b[1:-1])


def test_a_jitted_function_inside_another():
    inner = tn.jit(nothing)

    def f(a):
        inner(a)
        inner(a)

    jitted = tn.jit(f)
    a = np.zeros(3)
    for count in range(1, 4):
        jitted(a)
        assert a.tolist() == [2 * count] * 3


def test_inside_loops_parameters_are_values_of_the_body():
    def f(a):
        def body(i, c):
            c += 1
            return c

        return tn.fori_loop(0, 3, body, a)

    a = np.zeros(3)
    assert tn.jit(f)(a).tolist() == [3, 3, 3]
    assert a.tolist() == [0, 0, 0]


@pytest.mark.parametrize("options", [{}, {"compile": "never"}, {"verify": "off"}])
def test_a_hook_that_makes_an_argument_read_only_leaves_all_as_they_were(options):
    a, b = np.zeros(3), np.zeros(3)

    def lock(value):
        b.flags.writeable = False

    def update(a, b):
        tn.hook("lock", a.sum(), lock)
        a += 1
        b += 2

    with pytest.raises(MutationError, match="no argument was written"):
        tn.jit(update, **options)(a, b)
    assert not a.any()
    assert not b.any()
