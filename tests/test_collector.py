"""The collector rests while anyone asks for it, and then goes on as it was."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from weakref import ref

import numpy as np
import pytest

import tenfold as tn
from tenfold import collector
from tenfold.collector import MANY, resting


@pytest.fixture(scope="module", autouse=True)
def _nothing_frozen() -> Iterator[None]:
    """What the tests' own start has frozen (conftest) is as in any other process."""
    gc.unfreeze()
    yield
    gc.freeze()


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


class Knot:
    """An object that only the collector can free."""

    def __init__(self) -> None:
        self.itself = self


def tied(count: int) -> ref[Knot]:
    """Makes many objects while the collector rests, one of them a knot that nothing holds."""
    with resting():
        made = [[] for _ in range(count)]  # type: ignore[var-annotated]
        loose = ref(Knot())
        assert len(made) == count
    return loose


def test_many_new_objects_are_not_looked_at_until_all_are() -> None:
    gc.collect()
    loose = tied(2 * MANY)
    assert gc.get_count()[0] < MANY
    gc.collect(1)
    assert loose() is not None
    gc.collect()
    assert loose() is None


def test_all_are_looked_at_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "UNSEEN", 3 * MANY)
    monkeypatch.setattr(collector, "_unseen", 0)
    loose = tied(2 * MANY)
    assert loose() is not None
    tied(2 * MANY)
    assert loose() is None


def test_what_is_frozen_stays_so() -> None:
    gc.freeze()
    try:
        tied(2 * MANY)
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


def in_fork(question: Callable[[], bool]) -> bool:
    """The answer in the child of a fork."""
    child = os.fork()
    if not child:
        try:
            os._exit(0 if question() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_drops_the_blocks_of_other_threads_and_keeps_its_own() -> None:
    inside, go = threading.Event(), threading.Event()

    def other() -> None:
        with resting():
            inside.set()
            go.wait(20)

    def rests_and_goes_on() -> bool:
        with resting():
            rested = not gc.isenabled()
        return rested and gc.isenabled()

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    try:
        assert in_fork(gc.isenabled)
        assert in_fork(rests_and_goes_on)
        with resting():
            assert not in_fork(gc.isenabled)
        assert not gc.isenabled()  # the other thread's block goes on here
    finally:
        go.set()
        thread.join()
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_block_that_is_forked_in_ends_in_both() -> None:
    child = 0
    with resting():
        child = os.fork()
    if not child:
        os._exit(0 if gc.isenabled() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
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
    seen: SimpleQueue[bool] = SimpleQueue()  # a list that grows while tracing is refused

    def f(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> object:
        seen.put(gc.isenabled())
        return x * 2 + 1

    tn.jit(f)(np.ones(3))
    assert not seen.get_nowait()
    assert seen.empty()
    assert gc.isenabled()
