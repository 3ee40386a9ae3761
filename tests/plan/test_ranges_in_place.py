"""Ranges that are written over what they are computed from: in place where each element is computed
from its own place alone, and through memory of its own otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.plan import CopyStep, KernelStep

GRID = np.random.default_rng(3).random((9, 9))


def inner(a: Any, b: Any) -> Any:
    a[1:-1, 1:-1] += 0.5 * (b[:-2, 1:-1] - b[2:, 1:-1])
    return a


def rows(a: Any, b: Any) -> Any:
    a[1:] = np.sqrt(a[1:]) * a[1:] + b[:-1]
    a[:-1] -= b[1:]
    return a


def fields(a: Any, b: Any) -> Any:
    for _ in range(40):
        a[1:] -= 0.5 * (b[1:] - b[:-1])
        b[:-1, :-1] -= 0.7 * (a[:-1, 1:] - a[:-1, :-1] + a[1:, :-1])
    return a, b


def transposed(a: Any, b: Any) -> Any:
    a[1:, 1:] = a[1:, 1:].T + b[1:, 1:]
    return a


def shifted(a: Any, b: Any) -> Any:
    a[1:] = a[1:] + a[:-1] * b[1:]
    return a


def summed(a: Any, b: Any) -> Any:
    a[1:] -= a[1:].sum(axis=0) / b[1:]
    return a


def turned(a: Any, b: Any) -> Any:
    a[1:] += a[1:][::-1] * b[1:]
    return a


def read_again(a: Any, b: Any) -> Any:
    old = a.copy()
    a[1:] += b[1:]
    return a, old[:-1] * 2.0 + old[1:]


def used_twice(a: Any, b: Any) -> Any:
    part = a[1:] * b[1:]
    a[1:] = part + a[1:]
    return a, part, part.sum()


def beyond(a: Any, b: Any) -> Any:
    a[2:] = a[2:] * b[:-2]  # a start that plans of other graphs may have otherwise
    a[3:] = a[2:-1] + a[3:]
    return a


def picked(a: Any, b: Any) -> Any:
    a[1:] += b[1:][np.arange(8)[::-1]]
    return a


def bordered(a: Any, b: Any) -> Any:
    old = a.copy()
    a[1:-1, 1:-1] = old[:-2, 1:-1] + old[2:, 1:-1] - b[1:-1, 1:-1]
    a[1:-1, 0] = old[1:-1, 1] * 2.0
    a[:, -1] = a[:, -2]
    a[0] = a[1]
    return a


def one_element(a: Any, b: Any) -> Any:
    a[4, 3] -= a[4, :3] @ a[3, :3]
    a[4, 3] /= a[3, 3]
    a[2, 2] = np.sqrt(a.sum()) + b[1, 2]
    return a


def one_element_kept(a: Any, b: Any) -> Any:
    root = np.sqrt(a[1, 1] + a[2, 3])
    a[1, 1] = root
    a[2, 3] = a[1, 1] + b[0, 0]
    return a, root


def one_element_somewhere(a: Any, b: Any) -> Any:
    at = a[0].argmax()
    a[at, 2] = a[at, 1] + a[2, at] * b[at, at]
    a[at, at] = a[0, 0] - a.max()
    return a


def one_element_of_before(a: Any, b: Any) -> Any:
    old = a.copy()
    a[3, 3] = a[3, :3] @ a[:3, 3]
    return a, old - a


ALL = (
    inner,
    rows,
    fields,
    transposed,
    shifted,
    summed,
    turned,
    read_again,
    used_twice,
    beyond,
    bordered,
    one_element,
    one_element_kept,
    one_element_somewhere,
    one_element_of_before,
)


@pytest.mark.parametrize("f", [*ALL, picked], ids=lambda f: f.__name__)
def test_as_numpy_does(f: Any) -> None:
    def given() -> list[Any]:
        return [GRID.copy(), GRID.T + 1.0]

    jitted = tn.jit(f, verify="always")
    mine, theirs = given(), given()
    got, expected = jitted(*mine), f(*theirs)
    for a, b in zip((*got, *mine), (*expected, *theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    assert jitted.certificate(*given()).state == "whole"


@pytest.mark.parametrize("f", [inner, rows])
def test_nothing_is_stored_on_the_way(f: Any) -> None:
    plan = tn.jit(lambda a, b: f(a.copy(), b)).plan(GRID, GRID)
    kernels = [step for step in plan.steps if isinstance(step, KernelStep)]
    copies = [step for step in plan.steps if isinstance(step, CopyStep)]
    assert len(kernels) == len(copies)  # one for each update
    assert plan.arena_bytes == 0


def test_one_element_is_written_by_the_kernel_that_computes_it() -> None:
    """Whatever a kernel reads to compute its one element, it has read before it writes."""
    plan = tn.jit(lambda a, b: one_element(a.copy(), b)).plan(GRID, GRID)
    kernels = [step for step in plan.steps if isinstance(step, KernelStep)]
    assert len(kernels) == 2  # one for each update that is not written over
    for step in kernels:
        assert step.slots[-1] in step.slots[:-1]
    assert plan.arena_bytes == 0


@pytest.mark.parametrize("f", [one_element_kept, one_element_somewhere])
def test_an_element_that_is_more_than_that_is_computed_apart(f: Any) -> None:
    plan = tn.jit(lambda a, b: f(a.copy(), b)).plan(GRID, GRID)
    first = next(step for step in plan.steps if isinstance(step, KernelStep))
    assert not set(first.slots[: len(first.reads)]) & set(first.slots[len(first.reads) :])


def test_a_row_of_the_array_is_no_reason_to_copy_it() -> None:
    def f(a: Any) -> Any:
        a = a * 2.0
        a[0] = a[1]
        a[:, -1] = a[:, -2]
        return a

    plan = tn.jit(f).plan(GRID)
    for step in plan.steps:
        if isinstance(step, CopyStep):
            source, target = plan.slots[step.source], plan.slots[step.target]
            assert (source.place, source.offset) == (target.place, target.offset)


@pytest.mark.parametrize("f", [transposed, shifted, summed, turned])
def test_other_places_are_read_before_any_is_written(f: Any) -> None:
    plan = tn.jit(lambda a, b: f(a.copy(), b)).plan(GRID, GRID)
    for step in plan.steps:
        if isinstance(step, KernelStep):
            read, written = step.slots[: len(step.reads)], step.slots[len(step.reads) :]
            assert not set(read) & set(written)


def test_a_plan_of_other_starts() -> None:
    """A template's plan is not that of a graph whose literals say another place."""

    def at(start: int) -> Any:
        def f(a: Any, b: Any) -> Any:
            a[start : start + 5] = a[start : start + 5] * b[:5]
            return a

        return f

    for start in (1, 2, 3, 1):
        for extent in (9, 30, 50):
            a, b = np.random.default_rng(start).random((2, extent, 4))
            got = tn.jit(at(start), verify="always")(a.copy(), b)
            np.testing.assert_array_equal(got, at(start)(a.copy(), b))


def test_an_array_of_many_axes_that_is_updated_as_a_whole() -> None:
    """What is written over may take longer to compute than what is written."""
    shape = (2, 1, 3, 1, 2, 3, 1, 2)
    a, b = np.random.default_rng(3).random((2, *shape))

    def f(a: Any, b: Any) -> Any:
        for _ in range(2):
            a = np.sort(a, axis=2) * 2.0 - a.sum()
        return tn.dynamic_update(a, np.sqrt(b), (0,) * len(shape))

    jitted = tn.jit(f, verify="always")
    np.testing.assert_array_equal(jitted(a, b), np.sqrt(b))
    assert jitted.certificate(a, b).state == "whole"
