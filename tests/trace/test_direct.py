"""Small operations on arrays at hand: run when they are called, with the bits that nodes give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import IndexProblem, ShapeError
from tenfold.ops.rows import indexing
from tenfold.trace.lazy import lazy as values
from tenfold.trace.lazy import quick, recall

SMALL = 100


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tn.config, "direct", SMALL)
    monkeypatch.setattr(tn.config, "compile", "auto")
    monkeypatch.setattr(recall, "_recordings", {})
    quick.known.clear()
    for kind in values._kinds.values():
        kind.known.clear()


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ops of the nodes that are made."""
    made: list[str] = []
    before = values.DeferredNode.__init__

    def init(self: Any, form: Any, inputs: Any) -> None:
        made.append(form.op)
        before(self, form, inputs)

    monkeypatch.setattr(values.DeferredNode, "__init__", init)
    return made


def is_pending(x: tn.Array) -> bool:
    return x._value.node is not None


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "pairs": lambda x, y: x * y - x / y,
    "numbers": lambda x, y: 2.0 - x * 0.5 + (x > 0.0) * 3 - y**2,
    "zeros": lambda x, y: np.copysign(1.0, x * 0.0) + np.copysign(1.0, x * -0.0),
    "casts": lambda x, y: (x * 8).astype(np.int32) + 1.5,
    "several nodes": lambda x, y: x.mean(axis=0) + y.std(),
    "several results": lambda x, y: np.divmod(x, y)[1] + np.modf(x)[0],
    "constants": lambda x, y: np.clip(x, -0.5, 0.5) + np.where(x > y, x, 1.0),
    "views": lambda x, y: x[1:] + y[:-1] + x.T.reshape(4, 3)[0, 0],
    "products": lambda x, y: x @ y.T,
    "edges": lambda x, y: 1.0 / (x * 0.0) + np.sqrt(-np.abs(y)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_bits_are_those_of_nodes(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = PROGRAMS[name]
    x, y = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(dtype)
    results = []
    for direct in (SMALL, -1):
        monkeypatch.setattr(tn.config, "direct", direct)
        for _ in range(2):  # recorded, and played
            made = program(tn.asarray(x), tn.asarray(y))
            assert is_pending(made) == (direct < 0)
            results.append((made.dtype, made.shape, np.asarray(made).tobytes()))
    assert len(set(results)) == 1


def test_known_operations_make_no_nodes(nodes: list[str]) -> None:
    x, y = tn.asarray(np.ones(5)), tn.asarray(np.ones(5))
    for _ in range(2):
        nodes.clear()
        z = np.exp(x * 0.5 + y).sum()
        w = x[1:3] - y[0]
        assert not is_pending(z)
        assert not is_pending(w)
    assert not nodes


def test_large_ones_and_what_needs_them_wait(nodes: list[str]) -> None:
    x = tn.asarray(np.ones(SMALL + 1))
    total = (x + x).sum()
    later = total + 1.0
    assert nodes == ["add", "reduce_sum", "add"]
    assert is_pending(later)
    wide = tn.asarray(np.ones((20, 1))) - tn.asarray(np.ones(20))  # of small ones
    assert is_pending(wide)
    assert float(later) == 2 * SMALL + 3
    assert not is_pending(total)
    assert not is_pending(total + 1.0)


def test_all_wait_where_all_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tn.config, "compile", "always")
    x = tn.asarray([1.0, 2.0])
    assert is_pending(x + x)
    monkeypatch.setattr(tn.config, "compile", "never")
    assert not is_pending(x + x)


def test_errors_name_the_call_and_what_was_indexed() -> None:
    for i in (0, 1, 5):
        x = np.exp(tn.asarray([1.0, 2.0]))
        if i < 2:
            x[tn.asarray(i)]
            continue
        with pytest.raises(IndexProblem, match=r"(?s)made at .*test_direct.*test_direct"):
            x[tn.asarray(i)]


def test_nothing_warns_and_what_the_user_set_stands() -> None:
    x = tn.asarray([0.0, 1.0])
    with np.errstate(divide="raise"):
        for _ in range(2):
            assert (1 / x).tolist() == [np.inf, 1.0]
        with pytest.raises(FloatingPointError):
            np.divide(1.0, 0.0)


def test_what_is_handed_out_is_read_only() -> None:
    x = tn.asarray([1.0, 2.0])
    for made in (x + x, x[:1], x.sum()):
        host = np.asarray(made)
        assert not host.flags.writeable
        assert host is np.asarray(made)


def test_attributes_that_only_numpy_has() -> None:
    x = tn.asarray([3.0, 1.0, 2.0])
    assert x.flags.c_contiguous
    assert x.byteswap().byteswap().tolist() == [3.0, 1.0, 2.0]
    assert not hasattr(x, "nothing_of_the_kind")
    assert not hasattr(x, "__array_interface__")


# -- indexing


KEYS: list[Any] = [
    *(
        0,
        -1,
        2,
        slice(1, 3),
        slice(None, None, -2),
        slice(5, 2),
        None,
        (1, 2),
        (-1, slice(1, None)),
    ),
    *((slice(None), 3), (None, 1), (0, None, 1), (slice(1, 2), slice(None, None, 3)), ()),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_plain_keys_take_what_numpy_takes(key: Any, nodes: list[str]) -> None:
    host = np.arange(12.0).reshape(3, 4)
    x = tn.asarray(host)
    part, expected = x[key], host[key]
    assert np.asarray(part).tobytes() == np.asarray(expected).tobytes()
    assert part.shape == np.shape(expected)
    assert not nodes
    x[0, 0] = -1.0  # which views see, as NumPy's do
    host[0, 0] = -1.0
    assert np.asarray(part).tobytes() == np.asarray(host[key]).tobytes() or not np.shape(expected)
    if np.shape(expected):
        part[...] = 7.0
        expected[...] = 7.0
        assert np.asarray(x).tobytes() == host.tobytes()


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("value", [2.5, 3, -0.0])
def test_plain_keys_are_written_as_numpy_writes(key: Any, value: Any, nodes: list[str]) -> None:
    host = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = tn.asarray(host)
    alias, before, doubled = x, np.asarray(x), x * 2
    for given in (value, tn.asarray(np.float32(value))):
        nodes.clear()
        x[key] = given
        assert not nodes
        assert np.asarray(before).tobytes() == host.tobytes(), "an array that was handed out"
    host[key] = value
    assert np.asarray(alias).tobytes() == host.tobytes()
    assert np.asarray(doubled).tolist() == (before * 2).tolist()


def test_what_is_not_plain_is_left_to_the_surface() -> None:
    x = tn.asarray(np.arange(4.0))
    for key in (4, -5, (0, 0)):
        with pytest.raises(IndexProblem):
            x[key]
        with pytest.raises(IndexProblem):
            x[key] = 1.0
    with pytest.raises(OverflowError):
        x[0] = 10**400
    with pytest.raises(ShapeError):
        x[0] = tn.asarray([1.0])
    assert x.tolist() == [0, 1, 2, 3]
    counts = tn.asarray(np.array([1, 2], "int8"))
    with pytest.raises(OverflowError):
        counts[0] = 300
    x[1:] += 1.0
    x[True] = 5.0
    assert x.tolist() == [5, 5, 5, 5]


def test_an_element_of_a_large_array_is_read_and_nothing_kept(nodes: list[str]) -> None:
    x = tn.asarray(np.arange(SMALL * 20.0))
    assert float(x[7]) == 7.0
    assert np.asarray(x[7]).base is None
    assert np.asarray(x[3:7]).base is None
    assert not nodes
    part = x[: SMALL * 10]
    assert not is_pending(part)
    assert np.shares_memory(part._value.array, x._value.array), "a range needs no copy"
    assert not nodes
    assert is_pending(x[::2]), "a plan takes it from the whole"


# -- numbers written in place


def address(x: tn.Array) -> int:
    """Where the array of a lazy array at hand lies; it is not handed out for that."""
    return int(x._value.array.ctypes.data)


def test_a_number_is_written_in_place_where_nobody_else_holds_the_array(nodes: list[str]) -> None:
    x = tn.asarray(np.zeros(SMALL * 10)).copy()
    x[0] = 1.0  # to a copy: the array is still the caller's
    place = address(x)
    for i in range(1, 20):
        x[i] = float(i)
    x[2:4] = 7.0
    assert address(x) == place
    assert not nodes
    assert x[:6].tolist() == [1, 1, 7, 7, 4, 5]


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "copy": lambda x: x.copy(),
    "handed out": np.asarray,
    "view of all": lambda x: np.asarray(x[:]),
    "sum to come": lambda x: x + x,
    "part to come": lambda x: x[: SMALL * 5] * 1.0,
    "exported": lambda x: np.from_dlpack(x),
    "deferred": lambda x: (x[1:] - x[:-1], x.reshape(2, -1).T + 1.0),
}


@pytest.mark.parametrize("size", [SMALL // 2, SMALL * 10])
@pytest.mark.parametrize("name", HOLDERS)
def test_what_somebody_else_holds_is_not_overwritten(name: str, size: int) -> None:
    x = tn.asarray(np.arange(float(size)))
    x[0] = 5.0  # from here on the array is its own
    expected = np.arange(float(size))
    expected[0] = 5.0
    wanted = HOLDERS[name](expected.copy())
    held = HOLDERS[name](x)
    for i in range(size):
        x[i] = -1.0
    pairs = zip(held, wanted, strict=True) if type(held) is tuple else [(held, wanted)]
    for one, other in pairs:
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    assert np.asarray(x).tolist() == [-1.0] * size


def test_views_see_what_is_written_in_place() -> None:
    x = tn.asarray(np.zeros(SMALL * 10))
    x[0] = 1.0
    part = x[5:9]
    x[6] = 2.0
    part[0] = 3.0
    x[8] = 4.0
    assert part.tolist() == [3, 2, 0, 4]
    assert x[5:9].tolist() == [3, 2, 0, 4]


def test_updates_that_wait_copy_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tn.config, "compile", "never")
    x = tn.asarray(np.ones(SMALL * 10)) * 2.0  # which waits, and so does what is written to it
    for i in range(5):
        x[i] = float(i)
    between = x.copy()
    for i in range(5):
        x[i] = 9.0
    assert is_pending(x)
    copies: list[int] = []  # where what is written to lies
    function = indexing.update_in_place

    def counted(array: Any, *given: Any) -> Any:
        copies.append(array.ctypes.data)
        return function(array, *given)

    monkeypatch.setattr(indexing, "update_in_place", counted)
    assert np.asarray(x)[:6].tolist() == [9, 9, 9, 9, 9, 2]
    assert np.asarray(between)[:6].tolist() == [0, 1, 2, 3, 4, 2]
    assert len(copies) == 10
    assert len(set(copies)) == 2, "one of ten finds its array held by another, and copies it"


# -- shapes never met


def test_shapes_never_met_make_no_nodes_and_take_nothing_down(nodes: list[str]) -> None:
    host = np.random.default_rng(2).normal(size=(3, 20))
    x = tn.asarray(host)
    for n in range(20, 0, -1):
        if n == 19:
            nodes.clear()
            known = len(recall._recordings)
        part, wanted = x[:, :n], host[:, :n]
        made = (np.exp(part * 2.0 + 1.0) - part, part.copy().sum(), (2 - part).max(axis=0))
        expected = (np.exp(wanted * 2.0 + 1.0) - wanted, wanted.copy().sum(), (2 - wanted).max(0))
        for one, other in zip(made, expected, strict=True):
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
            assert one.shape == other.shape
            assert one.dtype == other.dtype
    assert set(nodes) == {"reduce_max"}, "whose shape depends on the axis"
    assert len(recall._recordings) == known + 19


def test_a_known_operation_is_taken_down_once_for_all_shapes(nodes: list[str]) -> None:
    x = tn.asarray(np.ones(3))
    (x + 2.0) + x, np.exp(x), x.sum()
    known = len(recall._recordings)
    for size in (5, SMALL + 5, SMALL + 6):
        x = tn.asarray(np.ones(size))
        for _ in range(2):
            nodes.clear()
            total = np.exp(x + 2.0 + x).sum()
            assert float(total) == np.exp(np.full(size, 4.0)).sum()
            assert nodes == ["add", "add", "exp", "reduce_sum"] * (size > SMALL)
    assert len(recall._recordings) == known


def test_other_shapes_broadcast_promote_and_fail_as_they_do() -> None:
    x = tn.asarray(np.ones((2, 3)))
    x + x, x.sum()
    assert (x + tn.asarray(np.ones((1, 3)))).shape == (2, 3)
    assert (tn.asarray(np.ones((4, 1))) + tn.asarray(np.ones((1, 4)))).shape == (4, 4)
    assert float(tn.asarray(np.ones((0, 5))).sum()) == 0.0
    assert (tn.asarray(np.ones((2, 7), "f4")) + tn.asarray(np.ones((2, 7)))).dtype == np.float64
    with pytest.raises(ShapeError):
        tn.asarray(np.ones((2, 4))) + tn.asarray(np.ones((2, 5)))
