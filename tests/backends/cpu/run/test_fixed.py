"""Code that is the same for every plan: made once, in a thread, whoever asks for it waits."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.run import fixed as module
from tenfold.backends.cpu.run.fixed import TEXTS, compile_ahead, fixed
from tenfold.backends.cpu.run.kernels import Request
from tenfold.backends.cpu.target import host_target
from tenfold.backends.llvm.target import LEVELS, LLVMTarget, named
from tenfold.backends.registry import backend_named


class Shelf:
    """A store in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def find(self, name: str) -> bytes | None:
        return self.kept.get(name)

    def keep(self, name: str, data: bytes) -> None:
        if name.startswith("interface-"):  # which is no code
            return
        assert name not in self.kept, "made twice"
        self.kept[name] = data


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    made = Shelf()
    monkeypatch.setattr(module, "stores", [made])
    monkeypatch.setattr(module, "_objects", {})
    monkeypatch.setattr(module, "_begun", set())
    yield made
    module._wait()


@pytest.fixture
def target() -> LLVMTarget:
    """The least processor of this architecture, which no other test compiles for."""
    host = host_target()
    return named(LEVELS[0], host) if host.arch == "x86_64" else host


def test_what_is_asked_for_meanwhile_is_made_once(shelf: Shelf, target: LLVMTarget) -> None:
    compile_ahead(target)
    found = {part: fixed(part, target) for part in TEXTS}
    module._wait()
    assert sorted(found.values()) == sorted(shelf.kept.values())
    assert fixed("gate", target) is found["gate"]


def test_what_a_store_has_is_not_compiled(
    shelf: Shelf, target: LLVMTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in TEXTS:
        fixed(part, target)
    module._objects.clear()
    monkeypatch.setattr(module, "_make", None)
    before = threading.active_count()
    compile_ahead(target)
    assert threading.active_count() == before
    assert {fixed(part, target) for part in TEXTS} == set(shelf.kept.values())


def test_it_is_the_same_every_time(shelf: Shelf, target: LLVMTarget) -> None:
    first = {part: fixed(part, target) for part in TEXTS}
    module._objects.clear()
    shelf.kept.clear()
    compile_ahead(target)
    assert {part: fixed(part, target) for part in TEXTS} == first


def test_a_routine_is_made_while_the_plan_that_calls_it_is(
    shelf: Shelf, target: LLVMTarget
) -> None:
    graph = tn.trace(lambda x: np.sort(np.sort(x, axis=0) + 1, axis=0), tn.spec((300,), "float32"))
    backend_named("cpu").plan(graph, target=target, request=Request(target, False))
    module._wait()
    assert {name.partition("-")[0] for name in shelf.kept} == {"tn_sort_f32"}
    assert fixed("tn_sort_f32", target) in shelf.kept.values()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_waits_for_the_thread(shelf: Shelf, target: LLVMTarget) -> None:
    compile_ahead(target)
    child = os.fork()
    if child == 0:
        os._exit(0 if len(shelf.kept) == 2 and fixed("steps", target) else 1)
    assert os.waitpid(child, 0)[1] == 0
