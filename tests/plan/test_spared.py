"""Copies that leave out what a later step writes: steps of stencils, beside what they read."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.run import bytecode
from tenfold.errors import ParityError, PlanError
from tenfold.plan import CopyStep, KernelStep, LoopStep, Plan
from tenfold.plan.file.file import read_plan, write_plan
from tenfold.plan.steps import spared
from tenfold.plan.steps.check import check_plan
from tenfold.plan.steps.spared import SparedRows, spared_rows

Key = tuple[slice, ...]
CAPABILITIES = BACKEND.capabilities(BACKEND.target())


def stepped(key: Key) -> Any:
    """A step that reads other places than it writes."""

    def f(u: Any) -> Any:
        u = u.copy()
        part = u[key]
        u[key] = part * 3 + np.flip(part, 0) * 2
        return u

    return f


def updates(plan: Plan) -> list[CopyStep]:
    return [s for one in plan.every for s in one.steps if isinstance(s, CopyStep)]


KEYS: dict[str, tuple[tuple[int, ...], Key]] = {
    "1-d": ((400,), np.s_[1:-1,]),
    "1-d, to the end": ((400,), np.s_[3:,]),
    "rows": ((12, 9), np.s_[1:-1, :]),
    "columns": ((12, 9), np.s_[:, 1:]),
    "2-d": ((12, 9), np.s_[1:-1, 2:-1]),
    "planes": ((6, 7, 5), np.s_[1:, :, :]),
    "3-d": ((18, 19, 20), np.s_[1:-1, 1:-1, 1:-1]),
    "3-d, whole planes' rows": ((8, 9, 10), np.s_[:, 1:-1, 1:]),
    "3-d, one plane out": ((8, 9, 10), np.s_[1:, :, 1:]),
    "4-d": ((6, 7, 8, 9), np.s_[1:, 1:, 1:, 1:]),
    "4-d, two axes": ((6, 7, 8, 9), np.s_[1:, :, 1:, :]),
    "one plane": ((1, 9, 10), np.s_[:, 1:, 1:]),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "complex128"])
@pytest.mark.parametrize("name", KEYS)
def test_what_is_written_is_not_copied(name: str, dtype: str) -> None:
    shape, key = KEYS[name]
    u = (np.random.default_rng(0).random(shape) * 50).astype(dtype)
    f = stepped(key)
    jitted = tn.jit(f, verify="always")
    np.testing.assert_allclose(jitted(u), f(u), rtol=1e-6)
    plan = jitted.plan(u)
    (copy,) = updates(plan)
    many = name == "4-d"  # its rows lie along three axes
    assert (copy.update >= 0) != many
    assert any(isinstance(s, KernelStep) and len(plan.own) == 1 for s in plan.steps)
    if not many:
        rows = spared_rows(plan.graph, copy.update)
        assert rows is not None
        whole = np.zeros(shape, plan.slots[copy.target].type.dtype)
        rows.of(whole)[...] = 255
        touched = (whole.view(np.uint8).reshape(*shape, -1) == 255).all(axis=-1)
        expected = np.zeros(shape, bool)
        expected[key] = True
        np.testing.assert_array_equal(touched, expected)
        assert rows.total == expected.sum() * whole.itemsize


def test_a_time_step_copies_the_border_alone_and_stores_nothing_else() -> None:
    def heat(u: Any) -> Any:
        for _ in range(20):
            u[1:-1, 1:-1] += 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, 2:] - 3 * u[1:-1, :-2])
        return u

    for extent in (20, 33, 64):
        u = np.random.default_rng(extent).random((extent, extent + 3))
        jitted = tn.jit(lambda u: heat(u.copy()), verify="always")
        np.testing.assert_allclose(jitted(u), heat(u.copy()), rtol=1e-9)
        plan = jitted.plan(u)
        (body,) = plan.plans
        assert [step.kind for step in body.steps] == ["copy", "kernel"]
        assert body.arena_bytes == 0


def test_a_small_range_stays_in_place() -> None:
    """The rest would be copied in every round."""

    def f(u: Any) -> Any:
        for _ in range(20):
            u[1:5] = u[0:4] * 0.5 + u[2:6]
        return u

    u = np.random.default_rng(0).random((40, 3))
    jitted = tn.jit(lambda u: f(u.copy()), verify="always")
    np.testing.assert_allclose(jitted(u), f(u.copy()), rtol=1e-9)
    (loop,) = [step for step in jitted.plan(u).steps if isinstance(step, LoopStep)]
    assert loop.second == loop.outputs


def test_a_range_whose_start_is_given_is_copied_whole() -> None:
    def f(u: Any, at: Any) -> Any:
        return tn.dynamic_update(u, tn.dynamic_slice(u, (at,), (30,))[::-1] * 2.0, (at,))

    u = np.random.default_rng(0).random(40)
    jitted = tn.jit(f, verify="always")
    for at in (0, 3, 10):
        wanted = u.copy()
        wanted[at : at + 30] = u[at : at + 30][::-1] * 2.0
        np.testing.assert_array_equal(jitted(u, at), wanted)
    assert all(copy.update == -1 for copy in updates(jitted.plan(u, 3)))


def test_rows_that_lie_along_several_axes() -> None:
    for counts in product((1, 2, 5), repeat=3):
        rows = SparedRows(7, counts[2], ((counts[0], 60), (counts[1], 11)))
        seen = np.zeros(400, np.uint8)
        rows.of(seen)[...] = 1
        at = [7 + 60 * i + 11 * j + k for i, j, k in product(*map(range, counts))]
        assert np.flatnonzero(seen).tolist() == sorted(at)
        assert rows.total == len(at)


def test_a_copy_that_leaves_out_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of one row more: what single steps do not show, the whole plan does."""
    right = spared_rows

    def wrong(graph: Any, position: int) -> SparedRows | None:
        rows = right(graph, position)
        return rows and replace(rows, bytes=rows.bytes + 8)

    monkeypatch.setattr(bytecode, "spared_rows", wrong)
    jitted = tn.jit(stepped(np.s_[1:-1, 1:-1]), strict=True)
    with pytest.raises(ParityError):
        jitted(np.random.default_rng(0).random((12, 9)))


def test_plans_from_files() -> None:
    """What is left out is read again; a plan that leaves out what nobody writes is refused."""
    u = np.random.default_rng(0).random((12, 9))
    plan = BACKEND.plan(tn.trace(stepped(np.s_[1:-1, 1:-1]), u))
    (copy,) = updates(plan)
    _, again = read_plan(write_plan(plan), CAPABILITIES)
    assert updates(again) == [copy]
    check_plan(again, CAPABILITIES)
    others = [n for n in range(len(plan.graph.nodes)) if n != copy.update]
    for update in (*others, len(plan.graph.nodes), -2):
        steps = tuple(replace(s, update=update) if s == copy else s for s in plan.steps)
        with pytest.raises(PlanError):
            check_plan(replace(plan, steps=steps), CAPABILITIES)
    assert spared.spared_rows(plan.graph, -1) is None
