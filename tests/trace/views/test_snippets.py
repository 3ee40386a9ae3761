"""Short programs as people write them that write through views: all give what NumPy gives.

Each takes an array of its own, four by six, and gives all that it looks at afterwards. What is
refused, with its reason, stands at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import tenfold as tn

SNIPPETS: dict[str, Callable[[Any], Any]] = {}


def snippet(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    SNIPPETS[f.__name__] = f
    return f


# -- parts


@snippet
def rows_are_set(x):
    for row in x:
        row[:] = row[::-1] + 1
    return x


@snippet
def rows_are_added_to(x):
    for i, row in enumerate(x):
        row += i
    return x


@snippet
def rows_of_two_arrays(x):
    y = x.copy()
    for a, b in zip(x, y, strict=True):
        a *= 2
        b[1:] = a[:-1]
    return x, y


@snippet
def an_element_of_a_row(x):
    x[1][2] = 9
    x[2][-1] += 3
    return x


@snippet
def a_part_of_a_part(x):
    x[1:][:, 2:][0, ::2] = 7
    x[::-1][1:3][:, 0] += 1
    return x


@snippet
def a_part_of_a_part_of_a_part(x):
    y = x
    for _ in range(3):
        y = y[:, 1:]
        y[0] += 1
    return x, y


@snippet
def the_name_of_a_part(x):
    y = x[1:]
    y += 10
    z = y[:, :3]
    z[...] = 4
    return x, y, z


@snippet
def a_part_seen_after_the_whole(x):
    y = x[1:3]
    x += 1
    a = y.copy()
    x[1] = 0
    return x, y, a


@snippet
def columns(x):
    x[:, 0], x[:, 1] = x[:, 1].copy(), x[:, 0].copy()
    return x


@snippet
def a_swap_that_fails(x):
    x[0], x[1] = x[1], x[0]  # both rows end as the second was
    return x


@snippet
def a_swap_by_an_index_array(x):
    x[[0, 1]] = x[[1, 0]]
    return x


@snippet
def strides(x):
    x[::2, 1::3] = 5
    y = x[::-2]
    y[0, ::-1] = np.arange(6)
    return x, y


@snippet
def negative_steps(x):
    y = x[::-1, ::-1]
    y[0] = 3
    y[1:, :2] -= 1
    return x, y


@snippet
def overlapping_parts(x):
    y = x[0]
    a, b = y[:4], y[1:5]
    a += b
    return x, a, b


@snippet
def a_shift(x):
    x[:, 1:] = x[:, :-1]
    x[1:] = x[:-1]
    return x


@snippet
def an_overlapping_out(x):
    np.add(x[1:], x[:-1], out=x[:-1])
    return x


@snippet
def empty_parts(x):
    x[2:2] = 5
    y = x[:, 6:]
    y += 1
    return x, y


@snippet
def an_ellipsis(x):
    x[...] = 3
    x[1, 2, ...] += 1
    y = x[0, 0, ...]
    y[...] = 8
    return x, y


@snippet
def numbers_are_no_views(x):
    a = x[1, 2]
    a += 1
    x[1, 2] = 0
    return x, a


@snippet
def new_axes(x):
    x[None, 1, None, :3][0, 0, 1:] = 2
    x[:, None][:, 0, 0] = 1
    return x


@snippet
def views_in_a_list(x):
    parts = [x[i : i + 2, j : j + 2] for i in (0, 2) for j in (0, 2, 4)]
    for i, part in enumerate(parts):
        part[:] = i
    x += 1
    parts[2] *= 3
    return x, parts


@snippet
def bases(x):
    y = x[1:]
    return y.base is x, y.T.base is x, x.base is None, x.T.ravel().base is x, x


@snippet
def two_names_of_one_part(x):
    a, b = x[1:, 1:], x[:, 1:][1:]
    a += 1
    b *= 2
    a[0] = b[1]
    return x, a, b


# -- masks and index arrays


@snippet
def a_mask_through_a_view(x):
    inner = x[1:-1, 1:-1]
    inner[inner > 9] = 1
    x[1:][x[1:] < 3] = 7
    return x, inner


@snippet
def life(x):
    x %= 2
    n = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    birth = (n == 3) & (x[1:-1, 1:-1] == 0)
    survive = ((n == 2) | (n == 3)) & (x[1:-1, 1:-1] == 1)
    x[...] = 0
    x[1:-1, 1:-1][birth | survive] = 1
    return x


@snippet
def a_known_mask(x):
    m = np.array([True, False, True, False])
    x[m] *= 2
    x[1:][m[1:], 2:] += 1
    return x


@snippet
def index_arrays_give_copies(x):
    y = x[[0, 2]]
    y += 100
    x[[0, 2]] += 1
    x[1:][[0, 0], [1, 2]] = 5
    return x, y


@snippet
def a_traced_row(x):
    i = np.argmax(x[:, 0])
    row = x[i]
    row += 1
    x[i] *= 2
    x[i][1:3] = 0
    return x, row


@snippet
def a_traced_row_of_a_part(x):
    i = np.argmin(x[1:, 0])
    row = x[1:, 2:][i]
    row[...] = 3
    x[1:][i, 0] = 7
    x[::2].T[i] = 1
    return x, row


@snippet
def a_mask_that_only_the_run_knows(x):
    m = x % 2 == 0
    x[m] *= 3
    x[1:][m[1:]] += 1
    y = x[:, ::2]
    y[y > 30] = 0
    return x, y


# -- arrays made on the way


@snippet
def parts_of_zeros(x):
    z = np.zeros((4, 6), x.dtype)
    v, t, r = z[1:], z.T, z.ravel()
    v[0] = x[0]
    t[2] += 1
    r[3] = x[0, 0]
    v += 1
    return z, v, t, r


@snippet
def rows_of_zeros(x):
    z = np.zeros_like(x)
    rows = [z[i] for i in range(4)]
    for i, row in enumerate(rows):
        row[:] = x[i] * i
    z[0] += 1
    return z, rows


@snippet
def another_shape_of_an_empty_array(x):
    z = np.empty((2, 12), x.dtype)
    z.reshape(4, 6)[:] = x
    w = z[:, ::2]
    np.add(w, 1, out=w)
    z.flat[3] = 7
    return z, w


@snippet
def strides_of_ones(x):
    z = np.ones(24, x.dtype)
    m = z.reshape(4, 6)
    d = np.einsum("ij->ji", m)
    d[0] = x[:, 0]
    sliding_window_view(z, 3, writeable=True)[2] = x[0, :3]
    m[x == 3] = 2
    return z, m, d


@snippet
def parts_of_complex_zeros(x):
    z = np.zeros((4, 6), complex)
    z.real = x.real
    z.imag[1:] += x.real[1:]
    re = z.real
    z *= 2
    return z, re


@snippet
def conversions(x):
    y, z, w, v = np.asarray(x), np.ascontiguousarray(x.T), np.array(x), np.asarray(x[1:])
    y[0] = 1
    z[0] = 50
    w[1] = 3
    v += 1
    return x, y, z, w, v


# -- shapes


@snippet
def a_transposed_row(x):
    x.T[0] = 4
    x.T[2:, 1:] += 1
    x.T.T[0, 0] = 9
    return x


@snippet
def axes_moved(x):
    y = x.reshape(2, 2, 6)
    np.moveaxis(y, 0, -1)[1, :, 0] = 5
    np.swapaxes(y, 0, 2)[3] += 2
    y.mT[0, 1] = 8
    np.transpose(y, (2, 0, 1))[0, 1, 1] = 3
    return x, y


@snippet
def a_ravel(x):
    x.ravel()[3] = 7
    x.ravel()[::5] += 1
    x.reshape(-1)[-1] = 0
    return x


@snippet
def a_ravel_that_copies(x):
    y = x.T.ravel()
    y[:] = 0
    z = x[:, ::2].ravel()
    z += 1
    w = x[0, ::2].ravel()
    w[0] = 50
    return x, y, z, w


@snippet
def a_ravel_of_rows(x):
    y = x[1:3].ravel()
    y[::2] = 1
    x.T.ravel("F")[1] = 9
    return x, y


@snippet
def a_reshape_of_a_part(x):
    y = x[:, :4].reshape(4, 2, 2)  # columns split: a view
    y[1] = 0
    z = x[:, :4].reshape(2, 8)  # rows joined: a copy
    z[0] = 100
    w = x[0, ::-1].reshape(2, 3)
    w[0] += 1
    return x, y, z, w


@snippet
def a_flatten_copies(x):
    y = x.flatten()
    y += 1
    return x, y


@snippet
def shapes_of_shapes(x):
    y = x.reshape(2, 12)[1].reshape(3, 4)[1:, ::2].T
    y += 1
    x *= 2
    return x, y


@snippet
def fortran_order(x):
    y = x.reshape((6, 4), order="F")  # a copy
    y[0] = 100
    z = x.T.reshape((3, 8), order="F")  # a view
    z[1] = 5
    return x, y, z


@snippet
def axes_of_one(x):
    y = np.expand_dims(x, (0, 2))
    y[0, 1, 0] = 6
    z = np.squeeze(y)
    z[:, 1] = 2
    np.atleast_3d(x)[2, 2, 0] = 8
    return x, y, z


@snippet
def splits(x):
    a, b = np.split(x, 2)
    a += 1
    left, middle, right = np.hsplit(b, 3)
    middle[:] = left
    for part in np.array_split(x, 3, axis=1):
        part[0] = 0
    return x, a, b, right


@snippet
def unstacked(x):
    a, b, *rest = np.unstack(x)
    a[:] = b
    rest[0] += a
    first, *_ = x
    first[0] = 33
    return x, a, b, rest


@snippet
def turned(x):
    np.flip(x, 0)[0] = 1
    np.fliplr(x)[:, 0] += 2
    np.rot90(x)[0] = 5
    np.rot90(x, 2)[0, 0] = 9
    return x


@snippet
def flat(x):
    x.flat[3] = 9
    x.flat[::7] += 1
    x.flat[[1, 2]] = [4, 5]
    x.T.flat[1] = 8
    x[1:].flat[-3:] = [1, 2]
    return x, x.flat[2:5], len(x.flat)


@snippet
def all_of_flat(x):
    x[1:, :2].flat = [1, 2, 3, 4]
    total = 0
    for item in x[0].flat:
        total = total + item
    return x, total


@snippet
def einsum_views(x):
    y = x[:, :4]
    np.einsum("ii->i", y)[:] = 7
    np.einsum("ij->ji", x)[0] += 1
    z = x[:, :4] * (1 + 2j)
    np.einsum("ii->i", z).real[1:] = 4
    np.einsum("ii->i", z)[np.argmax(x[0].real)] = 0
    return x, y, z


@snippet
def windows(x):
    w = sliding_window_view(x, 3, axis=1, writeable=True)
    w[0, 2] = 5
    w[:, 0, 1] += 1
    w[1, ::3] = 2
    return x, w


@snippet
def a_diagonal_follows(x):
    d, w = np.diagonal(x), np.broadcast_to(x[0], (2, 6))
    x += 1
    np.fill_diagonal(x[:, 2:], 50)
    return x, d, w


@snippet
def bits(x):
    kind = {1: np.int8, 4: np.int32, 8: np.int64}.get(x.dtype.itemsize, x.dtype)
    y = x.view(kind)
    y[0, 1:3] = 1
    x[1] += 1
    return x, y


@snippet
def real_parts(x):
    z = x * (1 + 2j)
    z.real += 1
    z.imag[1:, ::2] = 4
    z[0].real = z[1].imag
    re = z[2:].real
    z *= 2
    re[0] -= 1
    return z, re


# -- functions that write


@snippet
def out(x):
    y = np.ones_like(x)
    np.add(x[:, 1:], 1, out=y[:, :-1])
    np.multiply(x[0, :2], 2, out=y.T[0:4].T[1].reshape(2, 2)[1])
    return x, y


@snippet
def out_of_sums(x):
    y = np.zeros_like(x, shape=(3, 6))
    np.sum(x, axis=0, out=y[1], dtype=y.dtype)
    np.cumsum(x[0], out=y[2], dtype=y.dtype)
    return y


@snippet
def where_a_part_is_written(x):
    np.add(x[1:], 1, out=x[1:], where=x[1:] > 10)
    np.copyto(x[:, ::2], 0, where=x[:, ::2] > 20)
    return x


@snippet
def copyto(x):
    np.copyto(x[1:], x[:-1])
    np.copyto(x.T[0], 3)
    return x


@snippet
def fill(x):
    x[1:].fill(0)
    x[:, -1].fill(2)
    return x


@snippet
def sort(x):
    x *= 7
    x %= 11
    x[::2].sort()
    x.T[1:3].sort(axis=1)
    return x


@snippet
def put(x):
    np.put(x.ravel(), [0, 5], [7, 8])
    np.put(x[1:, 1:], [0, 1], 9)
    np.put(x.T.ravel(), [1], 100)  # of a copy
    np.put_along_axis(x[:2], np.array([[0], [1]]), 4, axis=1)
    np.place(x[2:], x[2:] > 20, [1])
    np.putmask(x[:, :2], x[:, :2] > 6, 0)
    return x


@snippet
def at(x):
    np.add.at(x[1:], ([0, 0], [1, 1]), 1)
    np.add.at(x.ravel(), [2, 2, 3], 1)
    return x


@snippet
def every_operator(x):
    y = x[1:, 1:]
    y += 3
    y -= 1
    y *= 2
    return x, y


@snippet
def matmul(x):
    x[:, 1:5] @= np.eye(4, dtype=x.dtype)[::-1]
    return x


# -- programs


@snippet
def prefix_sums(x):
    for i in range(1, 4):
        x[i] += x[i - 1]
    for j in range(1, 6):
        x[:, j] += x[:, j - 1]
    return x


@snippet
def elimination(x):
    y = x + np.eye(4, 6, dtype=x.dtype) * 3
    for k in range(3):
        below = y[k + 1 :]
        below -= below[:, k : k + 1] * y[k]
    return y


@snippet
def a_stencil(x):
    y = x.copy()
    now, later = x, y
    for _ in range(3):
        later[1:-1, 1:-1] = now[:-2, 1:-1] + now[2:, 1:-1]
        now, later = later, now
    return now, later, x


@snippet
def a_view_that_walks(x):
    rest = x.reshape(-1)
    n = 0
    while rest.size:
        rest[0] = n
        rest = rest[1:]
        n += 1
    return x


@snippet
def a_loop_over_rows(x):
    def step(total, row):
        row[1:] = row[:-1]
        part = total[::2]
        part += row[::2]
        return total, row

    return tn.scan(step, x[0] * 0, x) if isinstance(x, tn.Array) else _scanned(step, x)


def _scanned(step: Any, x: Any) -> Any:
    total, rows = x[0] * 0, []
    for row in x.copy():
        total, row = step(total, row)
        rows.append(row)
    return total, np.stack(rows)


@snippet
def views_in_a_branch(x):
    first = x[0]
    x[0] = 5

    def then(y):
        y = y.copy()
        y[1:][0] = first[1:] if y.ndim == 1 else first
        return y

    def other(y):
        return y * 0

    y = tn.cond(x[0, 0] == 5, then, other, x) if isinstance(x, tn.Array) else then(x)
    return x, y


@snippet
def lanes(x):
    def one(row):
        row = row.copy()
        row[::2] += row[1::2]
        row.reshape(2, 3)[1, 1:] = 0
        return row

    return tn.vmap(one)(x) if isinstance(x, tn.Array) else np.stack([one(row) for row in x])


DTYPES = ["f8", "i4", "u1", "c8"]
# Complex numbers have no order here, and no bits.
REAL = ("sort", "a_mask_through_a_view", "life", "where_a_part_is_written", "put", "a_traced_row",
        "a_traced_row_of_a_part", "a_mask_that_only_the_run_knows", "bits")  # fmt: skip
# Outside a trace np.asarray gives a NumPy array that can't be written to.
NOT_LAZY = ("conversions",)


def _flat(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [part for item in result for part in _flat(item)]
    return [result]


def _draw(dtype: str) -> Any:
    return np.arange(24)[::-1].reshape(4, 6).astype(dtype)


def _traced(f: Callable[[Any], Any], x: Any) -> Any:
    return tn.jit(lambda x: f(x.copy()), compile="now" if x.dtype == "f8" else "never")(x)


def _donated(f: Callable[[Any], Any], x: Any) -> Any:
    return tn.jit(f, donate="x", compile="never")(x.copy())


def _lazy(f: Callable[[Any], Any], x: Any) -> Any:
    return f(tn.asarray(x).copy())


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippets(name: str) -> None:
    f = SNIPPETS[name]
    for dtype in DTYPES[: 3 if name in REAL else 4]:
        x = _draw(dtype)
        expected = _flat(f(x.copy()))
        for run in (_traced, _donated, _lazy)[: 2 if name in NOT_LAZY else 3]:
            found = _flat(run(f, x))
            assert len(found) == len(expected)
            for got, wanted in zip(found, expected, strict=True):
                np.testing.assert_array_equal(np.asarray(got), wanted, f"{run} of {dtype}")


def test_there_are_enough() -> None:
    assert len(SNIPPETS) >= 53


# What is refused: NumPy refuses it too, or does what depends on the order in which it writes.
REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a broadcast": (lambda x: np.broadcast_to(x, (2, 4, 6)).fill(0), "read-only"),
    "a diagonal": (lambda x: np.diagonal(x).fill(0), "read-only"),
    "a real array's imaginary part": (lambda x: x.imag.fill(0), "read-only"),
    "windows that NumPy gives read-only": (lambda x: sliding_window_view(x, 2, 0).fill(0), "read"),
    "windows that overlap": (
        lambda x: sliding_window_view(x, 2, 0, writeable=True).fill(0),
        "in several places",
    ),
    "a grid": (lambda x: np.meshgrid(x[0], x[1], copy=False)[0].fill(0), "read-only"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    f, reason = REFUSED[name]
    for run in (lambda x: tn.jit(lambda x: f(x + 1))(x), lambda x: f(tn.asarray(x) + 1)):
        with pytest.raises(tn.TenfoldError, match=reason):
            run(_draw("f8"))
