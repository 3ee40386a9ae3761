"""Index expressions against brute force."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.kernel.ir.index import Index, axis, constant, flat, strides, unflatten, value

EXTENTS = (4, 6, 5)
COEFFICIENTS = st.sampled_from([1, 1, 2, 3, 4, 6, 12, 24, -1, 5, 30])
DIVISORS = st.sampled_from([2, 3, 4, 5, 6, 8, 12, 24, 30])

linear = st.tuples(
    st.just("linear"),
    st.lists(st.tuples(st.integers(0, 2), COEFFICIENTS), min_size=1, max_size=3),
    st.integers(-5, 20),
)
trees = st.recursive(
    linear,
    lambda inner: st.one_of(
        st.tuples(st.just("div"), inner, DIVISORS),
        st.tuples(st.just("mod"), inner, DIVISORS),
        st.tuples(st.just("add"), inner, inner, COEFFICIENTS),
    ),
    max_leaves=4,
)


def symbolic(tree: Any) -> Index:
    if tree[0] == "linear":
        total = constant(tree[2])
        for a, k in tree[1]:
            total = total + axis(a, EXTENTS[a]) * k
        return total
    if tree[0] == "div":
        return symbolic(tree[1]) // tree[2]
    if tree[0] == "mod":
        return symbolic(tree[1]) % tree[2]
    return symbolic(tree[1]) + symbolic(tree[2]) * tree[3]


def number(tree: Any, at: tuple[int, ...]) -> int:
    if tree[0] == "linear":
        return tree[2] + sum(at[a] * k for a, k in tree[1])
    if tree[0] == "div":
        return number(tree[1], at) // tree[2]
    if tree[0] == "mod":
        return number(tree[1], at) % tree[2]
    return number(tree[1], at) + number(tree[2], at) * tree[3]


@settings(max_examples=300, deadline=None)
@given(trees)
def test_simplified_means_the_same(tree: Any) -> None:
    index = symbolic(tree)
    low, high = index.range()
    for at in itertools.product(*map(range, EXTENTS)):
        expected = number(tree, at)
        assert index.evaluate(dict(enumerate(at))) == expected
        assert low <= expected <= high


@settings(max_examples=100, deadline=None)
@given(trees, st.integers(0, 1))
def test_substitute(tree: Any, shift: int) -> None:
    index = symbolic(tree).substitute({0: axis(7, 2) * 2 + shift})
    for at in itertools.product(range(2), range(6), range(5)):
        expected = number(tree, (at[0] * 2 + shift, at[1], at[2]))
        assert index.evaluate({7: at[0], 1: at[1], 2: at[2]}) == expected


def test_forms() -> None:
    i, j, k = axis(0, 8), axis(1, 6), axis(2, 16)
    whole = flat((i, j, k), strides((8, 6, 16)))
    assert unflatten(whole, (48, 16)) == (i * 6 + j, k)
    assert unflatten(whole, (8, 96)) == (i, j * 16 + k)
    for shape in ((16, 48), (3, 16, 16), (768,), (2, 4, 2, 3, 16)):
        assert flat(unflatten(whole, shape), strides(shape)) == whole
    # Splitting heads, then moving them, is plain affine.
    head, row, inner = axis(0, 4), axis(1, 10), axis(2, 16)
    position = unflatten(flat((row, head, inner), strides((10, 4, 16))), (10, 64))
    assert flat(position, (64, 1)) == row * 64 + head * 16 + inner


def test_div_mod_rules() -> None:
    e = axis(0, 1000)
    assert (e * 12) // 12 == e
    assert (e * 12 + 5) % 12 == constant(5)
    assert (e // 4) // 5 == e // 20
    assert (e % 20) // 4 == (e // 4) % 5
    assert (e % 20) % 5 == e % 5
    assert (e // 7) * 7 + e % 7 == e
    assert (e // 8) * 8 * 3 + (e % 8) * 3 == e * 3
    assert (axis(1, 3) + e * 6) // 6 == e
    assert (e * 4 + axis(1, 4)) % 8 == (e % 2) * 4 + axis(1, 4)
    v = value(3, 10)
    assert (v + e * 10) // 10 == e
    assert v.range() == (0, 9)
    assert v.values() == {3}
    assert axis(0, 1) == constant(0)


def test_stride() -> None:
    e, i = axis(0, 1000), axis(1, 4)
    assert (e * 3 + i).stride(0) == 3
    assert (e * 3 + i).stride(2) == 0
    assert (e // 3 + i).stride(0) is None
    assert (e // 3 + i * 2).stride(1) == 2
