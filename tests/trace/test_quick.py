"""Operations on arrays at hand in the shortest way: what NumPy gives, and whose memory it has."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import MutationError, TypeMismatch
from tenfold.trace.lazy import compute, quick, realise
from tenfold.trace.lazy import lazy as values

SMALL = 100
SIZES = (SMALL // 2, SMALL * 10)


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tn.config, "direct", SMALL)
    monkeypatch.setattr(tn.config, "compile", "never")


def address(x: tn.Array) -> int:
    """Where the array of a lazy array at hand lies; it is not handed out for that."""
    return int(x._value.array.ctypes.data)


def own(size: int, dtype: str = "float64") -> tn.Array:
    """An array at hand that nobody else holds."""
    x = tn.asarray(np.arange(size, dtype=dtype)) + tn.asarray(np.ones(size, dtype))
    realise.realise([x._value])
    return x


OPERATORS: list[Callable[[Any, Any], Any]] = [
    *(operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv),
    *(operator.imod, operator.ipow, operator.ior, operator.iand, operator.ixor),
]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex64", "int8", "bool"])
@pytest.mark.parametrize("update", OPERATORS)
def test_updates_are_numpys(update: Any, dtype: str, size: int) -> None:
    host = (np.arange(size) % 50 + 1).astype(dtype)
    x = tn.asarray(host)
    other = (np.arange(size) % 3 + 1).astype(dtype)
    for operand in (other, 2, True):
        try:
            with np.errstate(all="ignore"):
                update(expected := host.copy(), operand)
        except TypeError:
            with pytest.raises(TypeError):
                update(x.copy(), tn.asarray(operand) if operand is other else operand)
            continue
        for _ in range(3):  # recorded, known, known
            made = alias = x.copy() * tn.asarray(np.ones((), dtype))
            update(made, tn.asarray(operand) if operand is other else operand)
            assert alias is made
            assert made.dtype == expected.dtype
            np.testing.assert_allclose(np.asarray(made), expected, rtol=1e-5)


def test_an_update_is_made_in_place_where_nobody_else_holds_the_array() -> None:
    y = tn.asarray(np.ones(SIZES[0]))
    x = own(SIZES[0])
    x += y  # which is taken down
    x *= 0.5
    place, value = address(x), x._value
    del value
    for _ in range(5):
        x += y
        x *= 0.5
        assert address(x) == place
    held = x.copy()
    x += y
    assert address(x) != place
    assert address(held) == place
    place = address(x)
    x -= x
    assert np.asarray(x).tolist() == [0.0] * SIZES[0]


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "copy": lambda x: x.copy(),
    "handed out": np.asarray,
    "view of all": lambda x: np.asarray(x[:]),
    "part": lambda x: np.asarray(x[3:]),
    "sum to come": lambda x: x + x,
    "exported": lambda x: np.from_dlpack(x),
    "deferred": lambda x: (x[1:] - x[:-1], x.reshape(2, -1).T + 1.0),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", HOLDERS)
def test_what_somebody_else_holds_keeps_its_value(name: str, size: int) -> None:
    x, y = own(size), tn.asarray(np.ones(size))
    x += y
    expected = np.asarray(x).copy()
    x *= 1.0  # from here on the array is its own
    held, wanted = HOLDERS[name](x), HOLDERS[name](expected)
    for _ in range(3):
        x += y
        x *= 2.0
    pairs = zip(held, wanted, strict=True) if type(held) is tuple else [(held, wanted)]
    for one, other in pairs:
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    for _ in range(3):
        expected = (expected + 1) * 2
    assert np.asarray(x).tolist() == expected.tolist()


@pytest.mark.parametrize("size", [*SIZES, 5000])
def test_views_and_aliases_see_updates(size: int) -> None:
    x, y = own(size), tn.asarray(np.ones(size))
    alias, part, turned = x, x[2:-2], x[::-1]
    for _ in range(3):
        x += y
        part *= 2.0
        assert alias is x
        expected = np.asarray(x).copy()
        assert np.asarray(part).tolist() == expected[2:-2].tolist()
        assert np.asarray(turned).tolist() == expected[::-1].tolist()


def test_scalars_are_bound_anew_and_what_is_read_only_is_refused() -> None:
    for _ in range(3):
        total = before = own(3).sum()
        total += 1.0
        assert float(before) + 1.0 == float(total)
        wide = np.broadcast_to(own(3), (2, 3))
        with pytest.raises(MutationError):
            wide += 1.0
        counts = tn.asarray([1, 2])
        with pytest.raises(TypeMismatch):
            counts += 0.5
        with pytest.raises(TypeMismatch):
            counts /= counts


# -- values on the way


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each node that was run: whether in the memory of what it reads."""
    found: list[bool] = []
    run_over = realise._run_over

    def run(node: Any, value: Any) -> bool:
        found.append(run_over(node, value))
        return found[-1]

    monkeypatch.setattr(realise, "_run_over", run)
    return found


def test_values_on_the_way_are_overwritten(written: list[bool]) -> None:
    host = np.arange(SMALL * 10.0)
    x = tn.asarray(host)
    made = np.sqrt((x * 2.0 + 1.0) / x[::-1] - x)
    assert np.asarray(made).tobytes() == _quiet(host).tobytes()
    assert written == [False, True, True, True, True]
    assert np.asarray(x).tolist() == host.tolist()


def _quiet(x: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.sqrt((x * 2.0 + 1.0) / x[::-1] - x)


def test_values_that_somebody_holds_or_reads_again_are_not(written: list[bool]) -> None:
    x = tn.asarray(np.arange(SMALL * 10.0))
    twice = x * 2.0
    made = (twice + 1.0) * twice
    host = np.arange(SMALL * 10.0)
    assert np.asarray(made).tolist() == ((host * 2 + 1) * (host * 2)).tolist()
    assert np.asarray(twice).tolist() == (host * 2).tolist()
    assert written == [False, False, True]
    written.clear()
    squared = x * 2.0
    squared = squared * squared
    assert np.asarray(squared).tolist() == (host * host * 4).tolist()
    assert written == [False, False], "an input that is read twice"


def test_functions_that_may_go_other_ways_in_place_are_left_alone(written: list[bool]) -> None:
    x = tn.asarray(np.linspace(0, 1, SMALL * 10))
    z = x * 1j
    for made in (np.exp(x * 2.0), z * z * 2.0, (x * 2.0).astype("float32") + 1):
        np.asarray(made)
    assert not any(written[:1])
    forms = [values.NodeForm(op, (x.type,), (), ()) for op in ("exp", "sqrt")]
    assert [form.reuses for form in forms] == [(), (0,)]
    assert values.NodeForm("mul", (z.type, z.type), (), ()).reuses == ()


def test_an_interrupt_leaves_the_node_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tn.asarray(np.ones(SMALL * 10))
    made = (x + 1.0) * 3.0
    asked = realise.is_unshared

    def interrupt(value: Any) -> bool:
        if value.node is None and value.array is not x._value.array:
            raise KeyboardInterrupt
        return asked(value)

    with monkeypatch.context() as patch:
        patch.setattr(realise, "is_unshared", interrupt)
        with pytest.raises(KeyboardInterrupt):
            np.asarray(made)
    assert np.asarray(made).tolist() == [6.0] * (SMALL * 10)


def test_an_interrupt_after_the_function_finds_it_done(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tn.asarray(np.ones(SMALL * 10))
    made = (x + 1.0) * 3.0
    form = made._value.node.form

    def interrupted(*arrays: Any, out: Any) -> None:
        np.multiply(*arrays, out=out)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(form, "function", interrupted)
        with pytest.raises(KeyboardInterrupt):
            np.asarray(made)
    assert np.asarray(made).tolist() == [6.0] * (SMALL * 10)


def test_threads_that_want_the_same_values_get_them() -> None:
    host = np.arange(20_000.0)
    x = tn.asarray(host)
    for _ in range(20):
        made = x
        for _ in range(20):
            made = made * 1.5 + 1.0
        expected = host
        for _ in range(20):
            expected = expected * 1.5 + 1.0
        found: list[Any] = []
        start = threading.Barrier(4)

        def look(made: Any = made, start: Any = start, found: list[Any] = found) -> None:
            start.wait()
            found.append(np.asarray(made).tobytes())

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [expected.tobytes()] * 4


# -- known operations


def test_types_are_looked_for_when_somebody_asks() -> None:
    x = tn.asarray(np.ones(7))
    np.exp(x), x < 1.0, x.sum()
    for made, shape in ((np.exp(x[:3]), (3,)), (x[:3] < 1.0, (3,)), (x[:3].sum(), ())):
        assert made._value.kind is None
        assert made.shape == shape
        assert made.dtype == (bool if made._value.array.dtype == bool else np.float64)
        assert made._value.kind is not None
    twice = np.exp(x)
    assert twice._value.kind is x._value.kind, "as what it is made of"


@pytest.mark.parametrize("direct", [-1, SMALL])
def test_shapes_that_broadcast_are_met_first(direct: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tn.config, "direct", direct)
    quick.known.clear()
    for kind in values._kinds.values():
        kind.known.clear()
    column, row = np.arange(3.0)[:, None], np.arange(4.0)
    assert (tn.asarray(column) - tn.asarray(row)).tolist() == (column - row).tolist()
    for host in (column, row, column[0], np.ones(())):
        x = tn.asarray(host)
        assert (x - tn.asarray(host * 2)).tolist() == (host - host * 2).tolist()
        x = tn.asarray(host) * 2.0
        assert (x - tn.asarray(host)).shape == host.shape


def test_types_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "_KINDS", 20)
    x = tn.asarray(np.ones(200))
    expected = np.ones(200)
    for size in range(100, 150):
        part, whole = x[:size], expected[:size]
        part = part * 2.0 + part
        assert np.asarray(part).tolist() == (whole * 2.0 + whole).tolist()
        part += x[:size]
        assert np.asarray(part).tolist() == (whole * 4.0).tolist()
        assert len(values._kinds) <= 20
    assert (x + tn.asarray(expected)).tolist() == [2.0] * 200, "of a type that was forgotten"


def test_numbers_are_bounded_and_zeros_have_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "_LITERALS", 5)
    x = tn.asarray([1.0, -2.0])
    for number in (*range(20), 0.0, -0.0, float("nan"), 1e300):
        made = np.asarray(x * number)
        assert made.tobytes() == (np.array([1.0, -2.0]) * number).tobytes()
    for known in quick.known.values():
        assert len(known.literals) <= 5


def test_what_is_freed_meanwhile_may_use_arrays_too() -> None:
    """NumPy may have the collector run, and that runs what users want run at the end of objects:
    the thread is inside its context then."""
    x = tn.asarray([1.0, 2.0])
    x + x, x * 2.0

    def inside() -> None:
        assert (x + x).tolist() == [2.0, 4.0]
        assert x.sum().tolist() == 3.0
        y = x.copy()
        y += x
        assert y.tolist() == [2.0, 4.0]

    compute.quiet.run(inside)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("function", [np.maximum, np.minimum, np.add])
def test_a_result_in_memory_of_its_input_warns_of_nothing(function: np.ufunc) -> None:
    """NumPy warns of a third positional argument of maximum and minimum."""
    wanted = function(np.arange(1000.0) + 1, np.full(1000, 500.0))
    x = function(own(1000), tn.asarray(np.full(1000, 500.0)))
    np.testing.assert_array_equal(np.asarray(x), wanted)
