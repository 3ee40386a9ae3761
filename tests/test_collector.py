"""The collector rests while anyone asks for it, and then goes on as it was."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import tenfold as tn
from tenfold.collector import resting


def test_blocks_nest_and_errors_pass() -> None:
    with resting():
        with resting():
            assert not gc.isenabled()
        assert not gc.isenabled()
    with pytest.raises(KeyError), resting():
        raise KeyError
    assert gc.isenabled()


def test_the_last_of_several_threads_sets_it_going() -> None:
    inside, go = threading.Event(), threading.Event()

    def other() -> None:
        with resting():
            inside.set()
            go.wait(10)

    thread = threading.Thread(target=other)
    with resting():
        thread.start()
        inside.wait(10)
    assert not gc.isenabled()
    go.set()
    thread.join()
    assert gc.isenabled()


def test_one_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with resting():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_rests_while_a_function_is_traced_and_is_on_again_after() -> None:
    seen = []

    def f(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> object:
        seen.append(gc.isenabled())
        return x * 2 + 1

    tn.jit(f)(np.ones(3))
    assert seen == [False]
    assert gc.isenabled()
