"""Which loops get functions, which share one, and where functions are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.backends.llvm import assemble
from tenfold.parity.wiring import wiring_of
from tenfold.plan.steps.loops import native_loops
from tests.backends.cpu.loop.both_ways import MANY
from tests.backends.cpu.loop.test_updates_in_place import UPDATES


def test_other_lengths_and_sizes_share_a_function() -> None:
    def function(a: Any) -> Any:
        return tn.fori_loop(1, a.shape[0], UPDATES["twice"], a)

    tn.stats.reset()
    made = [
        CompiledProgram(BACKEND.plan(tn.trace(function, np.zeros(n)))) for n in (100, 1000, 5000)
    ]
    (name,) = {name for program in made for name in program.loops.values()}
    assert name
    assert tn.stats()["loops_compiled"] <= 1  # another test may have asked for it


def test_extents_of_what_a_loop_captures_and_makes_share_a_function() -> None:
    """As in a loop of a loop over a triangle: what lies on the stack has few sizes."""

    def function(a: Any, w: Any) -> Any:
        def turn(i: Any, a: Any) -> Any:
            part = tn.dynamic_slice(a, (i,), (1,)) * w + 1.0
            return tn.dynamic_update(a, (part @ part).reshape(1), (i + 1,))

        return tn.fori_loop(0, MANY, turn, a)

    names = set()
    for n in range(17, 33):  # all in one interval of powers of two
        graph = tn.trace(function, np.zeros(100), np.zeros(n))
        (name,) = CompiledProgram(BACKEND.plan(graph)).loops.values()
        names.add(name)
    assert len(names) == 1


def test_the_loops_of_a_plan_are_compiled_beside_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[str] = []

    class Watched(assemble.Assembly):
        def add(self, text: str) -> None:
            given.append(text)
            super().add(text)

    monkeypatch.setattr(assemble, "Assembly", Watched)

    def function(x: Any) -> Any:
        for power in (2, 3, 4, 2):  # the last is the first's
            x = tn.fori_loop(0, MANY, lambda i, x, power=power: x**power * 0.125 + i * 0.0625, x)
        return x

    x = np.float64(0.7310)
    loops = tn.jit(function).program_for(x)[2].loops
    assert len(loops) == 4
    assert len(set(loops.values())) == 3
    assert sum("@tn_loop_" in text for text in given) == 3


def test_a_plan_with_another_function_is_wired_in_another_way() -> None:
    """It does not answer before its own check: its function was not judged."""

    def function(a: Any) -> Any:
        return tn.fori_loop(0, MANY, lambda i, a: a * 0.5 + i, a)

    found = []
    for n in (20, 100, 200):  # kept on the stack, or not
        graph = tn.trace(function, np.zeros(n))
        program = CompiledProgram(BACKEND.plan(graph))
        found.append((wiring_of(program, graph), *program.loops.values()))
    assert found[0][0] != found[1][0]
    assert found[0][1] != found[1][1]
    assert found[1] == found[2]
    assert found[1][0] is not None


def test_a_function_goes_to_a_file_and_comes_back(tmp_path: Path) -> None:
    def function(a: Any, x: Any) -> Any:
        return tn.fori_loop(1, a.shape[0], UPDATES["in_an_inner_loop"], a * x)

    a = np.random.default_rng(3).standard_normal(60)
    jitted = tn.jit(function)
    wanted = jitted(a, 0.5)
    jitted.plan(a, 0.5).save(tmp_path / "loop.plan")
    loaded = tn.load(tmp_path / "loop.plan")
    assert loaded(a, 0.5).tobytes() == wanted.tobytes()


def test_loops_that_get_no_function_say_why() -> None:
    def few(x: Any) -> Any:
        return tn.fori_loop(0, 5, lambda i, x: x * 2, x)

    def host(x: Any) -> Any:
        return tn.fori_loop(0, 50, lambda i, x: np.linalg.inv(x), x)

    def long(x: Any) -> Any:
        return tn.fori_loop(0, 50, lambda i, x: np.sin(x), x)

    reasons = [
        *native_loops(BACKEND.plan(tn.trace(few, 1.0))).values(),
        *native_loops(BACKEND.plan(tn.trace(host, np.eye(30)))).values(),
        *native_loops(BACKEND.plan(tn.trace(long, np.ones(10_000)))).values(),
    ]
    assert len(reasons) == 3
    assert all(reasons)
    assert "rounds" in reasons[0]
    assert "elements" in reasons[2]
    assert reasons[0] in BACKEND.plan(tn.trace(few, 1.0)).explain()
    many = tn.jit(lambda x: tn.fori_loop(0, 50, lambda i, x: x * 2, x))
    assert "one native function" in many.plan(1.0).explain()
    many = tn.jit(lambda x: tn.fori_loop(0, 50, lambda i, x: _long(x), x))
    assert "its code would be long" in many.plan(1.0).explain()


def _long(x: Any) -> Any:
    """Much, for one kernel."""
    for n in range(12):
        x = np.sin(np.cos(np.tanh(x + n)))
    return x
