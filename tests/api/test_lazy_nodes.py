"""Lazy arrays run node by node: what is run, freed, kept after an error, and how values lie."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import IndexProblem
from tenfold.trace.lazy import realise
from tenfold.trace.lazy.lazy import LazyValue


@pytest.fixture(autouse=True)
def deferred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have small operations wait too."""
    monkeypatch.setattr(tn.config, "direct", -1)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ops of the nodes that are run one by one, in order."""
    seen: list[str] = []
    before = realise._run

    def run(value: LazyValue) -> None:
        assert value.node is not None
        seen.append(value.node.form.op)
        before(value)

    monkeypatch.setattr(tn.config, "compile", "never")
    monkeypatch.setattr(realise, "_run", run)
    return seen


def is_pending(x: tn.Array) -> bool:
    return x._value.node is not None


def test_nodes_are_run_one_by_one_and_once(ran: list[str]) -> None:
    x = tn.asarray(np.arange(8.0))
    alive = np.exp(x)
    z = np.sqrt(alive + 1) * 3
    dead = np.sin(alive)
    assert not ran
    z.tolist()
    assert ran == ["exp", "add", "sqrt", "mul"]
    assert not is_pending(alive)
    (z + alive).tolist()
    assert ran[4:] == ["add"]
    assert is_pending(dead)


def test_what_dies_on_the_way_is_freed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tn.config, "compile", "never")
    most = 0
    before = realise._run

    def run(value: LazyValue) -> None:
        nonlocal most
        before(value)
        arrays = [o.array for o in gc.get_objects() if type(o) is LazyValue]
        most = max(most, sum(a is not None and a.size == 12345 for a in arrays))

    x = tn.ones(12345)
    for _ in range(20):
        x = np.sin(x) + 1
    monkeypatch.setattr(realise, "_run", run)
    np.asarray(x)
    assert most <= 3


def test_an_error_keeps_what_was_done_before_it(ran: list[str]) -> None:
    x = tn.asarray([1.0, 2.0])
    fine = np.exp(x)
    bad = fine[tn.asarray(5)]
    for _ in range(2):
        with pytest.raises(IndexProblem, match="made at"):
            bad.item()
    assert ran == ["exp", "gather", "gather"]
    assert not is_pending(fine)


def test_an_interrupt_keeps_what_was_done_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tn.asarray([1.0, 2.0])
    fine, later = np.exp(x), np.exp(x) * 2
    before = realise._run

    def run(value: LazyValue) -> None:
        if value is later._value:
            raise KeyboardInterrupt
        before(value)

    with monkeypatch.context() as patch:
        patch.setattr(realise, "_run", run)
        with pytest.raises(KeyboardInterrupt):
            (fine + later).tolist()
    assert not is_pending(fine)
    assert is_pending(later)
    assert (fine + later).tolist() == (np.exp([1.0, 2.0]) * 3).tolist()


def test_nothing_warns_and_what_the_user_set_stands() -> None:
    x = tn.asarray([0.0, 1.0])
    with np.errstate(divide="raise", invalid="raise"):
        assert (1 / x).tolist() == [np.inf, 1.0]
        assert np.geterr()["divide"] == "raise"
        with pytest.raises(FloatingPointError):
            np.divide(1.0, 0.0)


def test_values_lie_in_c_order_and_small_views_keep_nothing_alive() -> None:
    x = tn.asarray(np.arange(12_000.0).reshape(3, -1))
    turned, one = x.T, x[0, 0]
    assert np.asarray(turned).flags.c_contiguous
    assert np.asarray(turned) is np.asarray(turned), "copied once"
    assert np.asarray(one).base is None
    assert turned.tolist() == np.arange(12_000.0).reshape(3, -1).T.tolist()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_are_rounded_once_an_op(dtype: str) -> None:
    from tenfold.types import as_dtype

    x = np.linspace(0, 3, 50).astype(as_dtype(dtype))
    expected = tn.jit(lambda x: np.exp(x) * x + x, compile="never")(x)
    lazy = tn.asarray(x)
    assert np.asarray(np.exp(lazy) * lazy + lazy).tobytes() == expected.tobytes()
