"""Arrays with several names, and views, updated in branches and loops."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import ControlError, MutationError, ScopeError

X = np.arange(12.0).reshape(4, 3)


def same(function, *calls):
    jitted = tn.jit(function, control="convert", compile="never")
    for call in calls:
        for found, wanted in zip(jitted(*call), function(*call), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_rows_are_written_through():
    def rows(x, limit):
        y = x.copy()
        for row in y:
            if row[0] > limit:
                break
            row[:] = -1
        return (y,)

    same(rows, (X, 4.0), (X, -1.0), (X, 99.0))


def test_a_view_from_outside_sees_what_a_branch_writes():
    def seen(x, v):
        y = x.copy()
        part = y[1:3]
        if v > 0:
            y[1] = v
            part += 1
            inside = part.sum()
        else:
            part[0, 0] = 50
            inside = y.sum()
        return y, part, inside

    same(seen, (X, 1.0), (X, -1.0))


def test_a_view_from_outside_is_written_in_a_loop():
    def written(x, n):
        y = x.copy()
        corner = y[:2, :2]
        total = 0.0
        while n > 0:
            corner *= 2
            total = total + y[0].sum()
            n -= 1
        return y, corner, total

    same(written, (X, 3), (X, 0))


def test_an_array_that_may_be_one_or_another_is_not_written():
    def either(x, v):
        a, b = x.copy(), x * 2
        y = a if v > 0 else b
        y[0] = 1
        return a, b, y

    with pytest.raises(MutationError, match="copy it first"):
        tn.jit(either, control="convert")(X, 1.0)


def test_one_new_array_under_two_names_stays_one():
    def both(x, v):
        if v > 0:
            y = z = x + 1
        else:
            y = z = x - 1
        y[0] = 7
        return y, z

    same(both, (X, 1.0), (X, -1.0))


def test_buffers_that_change_places():
    def swapped(x, n):
        a, b = x.copy(), x * 0
        for _ in range(n):
            b[1:] = a[:-1] + 1
            a, b = b, a
        return a, b

    same(swapped, (X, 0), (X, 1), (X, 4))


def test_a_third_name_for_a_buffer_that_changed_places():
    def third(x, n):
        a, b = x.copy(), x * 0
        c = b
        for _ in range(n):
            b[1:] = a[:-1] + 1
            a, b = b, a
        return a, b, c

    with pytest.raises(ScopeError, match="leaked"):
        tn.jit(third, control="convert")(X, 2)


def test_a_view_that_is_bound_anew_and_written():
    def slides(x, n):
        y = x.copy()
        part = y[0]
        while n > 0:
            part += 1
            part = y[n]
            n -= 1
        return y

    with pytest.raises(ControlError, match=r"updates part in place.*\n.*\n.*part = part.copy\(\)"):
        tn.jit(slides, control="convert")(X, 2)


@pytest.mark.parametrize("v", [1.0, -1.0])
def test_arrays_made_inside_that_are_known_before_a_branch(v):
    def made(v):
        y = np.zeros((2, 3))
        part = y[1]
        z = np.arange(4.0)
        w = np.ones(3)
        flat = np.zeros((2, 2))
        if v > 0:
            y[0, 0] = 5
            part += 1
            z.fill(7)
            np.add(w, 1, out=w)
            flat.flat[1] = 3
        else:
            z[:2] = v
        return y, part, z, w, flat

    same(made, (v,))


def test_arrays_made_inside_that_a_loop_fills():
    def filled(n):
        y = np.zeros(8)
        rows = np.zeros((3, 2))
        for i in range(n):
            y[i] = i * i
            row = rows[i % 3]
            row += 1
        return y, rows

    same(filled, (5,), (0,))


def test_arrays_made_on_both_sides_may_be_written():
    def sides(v):
        if v > 0:
            y = np.zeros(3)
        else:
            y = np.ones(3)
        y[0] = v
        return (y,)

    same(sides, (1.0,), (-1.0,))


def test_a_third_name_for_a_buffer_made_inside():
    def third(n):
        a, b = np.zeros(3), np.ones(3)
        c = b
        for i in range(n):
            b[0] = i
            a, b = b, a
        return a, b, c

    with pytest.raises(ScopeError, match="leaked"):
        tn.jit(third, control="convert")(2)


def bound_anew(x, t):
    y = x * 2
    other = y
    if t > 0:
        y = x + 1
    y[0] = 9  # in Python this reaches `other`, or does not
    return other, y


def viewed_and_bound_anew(x, t):
    y = np.zeros_like(x)
    part = y[1:]
    while t > 0:
        y = y + 1
        t -= 1
    y[0] = 9
    return part, y


def named_inside_and_bound_anew(x, t):
    y = x * 2
    if t > 0:
        other = y
        if t > 1:
            y = y + 1
        y[1] = 2
        y = y + other
    return (y,)


@pytest.mark.parametrize(
    "function", [bound_anew, viewed_and_bound_anew, named_inside_and_bound_anew]
)
def test_what_may_be_an_array_of_another_name_is_not_written(function):
    with pytest.raises(MutationError, match="a branch chose"):
        tn.jit(function, control="convert")(X, 1.0)


def test_an_array_that_nobody_else_names_is_written_after_a_branch():
    def inside(x, t):
        y = x * 2
        if t > 0:
            y[0] = 1
            if t > 1:
                y = y + 1
            y[1] = 2
        y[2] = 5
        return (y,)

    def rounds(x, t):
        y, i = np.zeros_like(x), 0
        while i < 3:
            if t > i:
                y = y + x
            y[i] = 7
            i += 1
        return (y,)

    same(inside, (X, 0.0), (X, 1.0), (X, 2.0))
    same(rounds, (X, 0.0), (X, 1.0), (X, 2.0))
