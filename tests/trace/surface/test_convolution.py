"""tn.conv and tn.conv_transpose, compiled, beside sums that are written out."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import ShapeError, ValueProblem

Array = np.ndarray[Any, Any]
DTYPES = ("f4", "f8", "f4", "i1", "i2", "i4", "i8", "u1", "u4", "f2", "bf16", "c8")


def dtype_of(name: str) -> Any:
    return ml_dtypes.bfloat16 if name == "bf16" else np.dtype(name)


def drawn(random: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Array:
    """Small whole numbers: every order of adding gives the same."""
    made = random.integers(-3, 4, shape).astype(dtype_of(dtype))
    return made + 1j * random.integers(-3, 4, shape) if dtype == "c8" else made


def put(x: Array, w: Array, steps: Any, spaced: Any, groups: int, space: Any) -> Array:
    """Each element of x puts the kernel, times itself, into the result; w begins with its
    channels."""
    each = w.shape[1]
    made = np.zeros((x.shape[0], groups * each, *space), x.dtype)
    share = x.shape[1] // groups
    for channel, out, *at in product(range(x.shape[1]), *(range(k) for k in w.shape[1:])):
        places = tuple(
            slice(k * d, k * d + (n - 1) * s + 1, s)
            for k, d, n, s in zip(at, spaced, x.shape[2:], steps, strict=True)
        )
        if x.size:
            made[(slice(None), channel // share * each + out, *places)] += (
                x[:, channel] * w[(channel, out, *at)]
            )
    return made


def slid(x: Array, w: Array, strides: Any, dilation: Any, groups: int, out: Any) -> Array:
    """The windows of a padded x times w."""
    share, each = w.shape[0] // groups, w.shape[1]
    made = np.zeros((x.shape[0], w.shape[0], *out), x.dtype)
    for o, channel, *at in product(*(range(k) for k in w.shape)):
        places = tuple(
            slice(k * d, k * d + (m - 1) * s + 1, s)
            for k, d, m, s in zip(at, dilation, out, strides, strict=True)
        )
        if made.size:
            seen = x[(slice(None), o // share * each + channel, *places)]
            made[:, o] += seen * w[(o, channel, *at)]
    return made


def spread(x: Array, apart: Any, pads: Any) -> Array:
    """x with spaces between its elements and zeros around it; below none, without its edges."""
    shape = [n + max(n - 1, 0) * (d - 1) for n, d in zip(x.shape[2:], apart, strict=True)]
    made = np.zeros((*x.shape[:2], *shape), x.dtype)
    made[(slice(None), slice(None), *(slice(None, None, d) for d in apart))] = x
    made = np.pad(made, [(0, 0), (0, 0), *((max(a, 0), max(b, 0)) for a, b in pads)])
    cuts = (slice(max(-a, 0), n + max(a, 0) + max(b, 0) - max(-b, 0))
            for n, (a, b) in zip(shape, pads, strict=True))  # fmt: skip
    return made[(slice(None), slice(None), *cuts)]


def check(got: Array, want: Array, dtype: str) -> None:
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    exact = np.asarray(want, np.complex128)
    np.testing.assert_array_equal(np.asarray(got, np.complex128), exact)


@pytest.mark.parametrize("seed", range(36))
def test_drawn(seed: int) -> None:
    choose, random = Random(seed), np.random.default_rng(seed)
    dtype = DTYPES[seed % len(DTYPES)]
    rank = choose.choice((1, 2, 2, 3))
    groups = choose.choice((1, 1, 2, 3))
    each, share = choose.choice(((1, 1), (2, 3), (5, 4), (9, 8)))
    most = {1: 300, 2: 19, 3: 8}[rank]
    space = [choose.randint(1, most) for _ in range(rank)]
    kernel = [choose.choice((1, 2, 3, 5)) for _ in range(rank)]
    strides = tuple(choose.choice((1, 1, 2, 3)) for _ in range(rank))
    dilation = tuple(choose.choice((1, 1, 2)) for _ in range(rank))
    apart = tuple(choose.choice((1, 1, 2, 3)) for _ in range(rank))
    pads = [(choose.randint(-1, 3), choose.randint(0, 3)) for _ in range(rank)]
    x = drawn(random, dtype, (choose.choice((0, 1, 2, 5)), groups * each, *space))
    w = drawn(random, dtype, (groups * share, each, *kernel))
    wide = x.astype("f4") if dtype in ("f2", "bf16") else x
    padded = spread(wide, apart, pads)
    out = [
        max((n - (k - 1) * d - 1) // s + 1, 0)
        for n, k, d, s in zip(padded.shape[2:], kernel, dilation, strides, strict=True)
    ]
    want = slid(padded, w.astype(wide.dtype), strides, dilation, groups, out).astype(x.dtype)
    given: dict[str, Any] = {
        "strides": strides, "padding": pads, "dilation": dilation, "x_dilation": apart,
        "groups": groups,
    }  # fmt: skip
    check(tn.jit(lambda x, w: tn.conv(x, w, **given))(x, w), want, dtype)
    turned = np.moveaxis(np.moveaxis(x, -1, 0).copy(), 0, -1)  # not packed
    check(
        tn.jit(lambda x, w: tn.conv(x[:, ::-1, ...][:, ::-1], w, **given))(turned, w), want, dtype
    )


@pytest.mark.parametrize("seed", range(24))
def test_transposed(seed: int) -> None:
    choose, random = Random(seed), np.random.default_rng(seed)
    dtype = DTYPES[seed % len(DTYPES)]
    rank, groups = choose.choice((1, 2, 2, 3)), choose.choice((1, 1, 2))
    each, share = choose.choice(((1, 1), (2, 3), (6, 5)))
    space = [choose.randint(1, {1: 90, 2: 14, 3: 5}[rank]) for _ in range(rank)]
    kernel = [choose.choice((1, 2, 3, 4, 5)) for _ in range(rank)]
    strides = tuple(choose.choice((1, 2, 2, 3)) for _ in range(rank))
    dilation = tuple(choose.choice((1, 1, 1, 2)) for _ in range(rank))
    spans = [(k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
    pads = [(choose.randint(0, span), choose.randint(0, span)) for span in spans]
    more = tuple(choose.randrange(s) for s in strides)
    x = drawn(random, dtype, (choose.choice((1, 2, 3)), groups * each, *space))
    w = drawn(random, dtype, (groups * each, share, *kernel))
    wide = "f4" if dtype in ("f2", "bf16") else x.dtype
    full = [(n - 1) * s + span + 1 for n, s, span in zip(space, strides, spans, strict=True)]
    whole = put(x.astype(wide), w.astype(wide), strides, dilation, groups, full)
    whole = np.pad(whole, [(0, 0), (0, 0), *((0, n) for n in more)])
    cuts = (slice(a, n + m - b) for n, m, (a, b) in zip(full, more, pads, strict=True))
    want = whole[(slice(None), slice(None), *cuts)].astype(x.dtype)
    if 0 in want.shape:
        return
    given: dict[str, Any] = {
        "strides": strides, "padding": pads, "dilation": dilation, "groups": groups,
        "output_padding": more,
    }  # fmt: skip
    check(tn.jit(lambda x, w: tn.conv_transpose(x, w, **given))(x, w), want, dtype)


def test_it_is_the_transpose() -> None:
    """What conv makes of x times y is x times what conv_transpose makes of y."""
    random = np.random.default_rng(1)
    x, w = (random.integers(-3, 4, s).astype("f8") for s in ((2, 6, 15, 12), (8, 3, 3, 4)))
    given: dict[str, Any] = {"strides": (2, 3), "padding": ((1, 0), (2, 1)), "groups": 2}
    y = tn.conv(x, w, **given)
    v = random.integers(-3, 4, y.shape).astype("f8")
    back = tn.conv_transpose(v, w, **given, output_padding=(1, 2))
    assert back.shape == x.shape
    assert np.sum(y * v) == np.sum(x * back)


def test_bias_and_activation_follow() -> None:
    random = np.random.default_rng(2)
    x, w = (random.standard_normal(s).astype("f4") for s in ((2, 8, 20, 20), (16, 8, 3, 3)))
    b = random.standard_normal((16, 1, 1)).astype("f4")

    def layer(x: Any, w: Any, b: Any) -> Any:
        return np.maximum(tn.conv(x, w, padding=1) + b, 0)

    plan = tn.jit(layer).plan(x, w, b)
    assert "in panels: 16 out channels by 72 terms by 800 columns" in plan.explain()
    assert len(plan.steps) == 3  # zeros around it; the sums; what follows
    small = tn.jit(layer).plan(x[:1, :, :3, :3], w, b)
    assert "in panels" not in small.explain()


def test_bits_do_not_depend_on_threads() -> None:
    random = np.random.default_rng(4)
    x, w, v, each = (
        random.standard_normal(s).astype("f4")
        for s in ((4, 16, 30, 30), (24, 16, 3, 3), (16, 24, 4, 4), (16, 1, 5, 5))
    )

    def all_ways(x: Any, w: Any, v: Any, each: Any) -> Any:
        return (
            tn.conv(x, w, padding=1),
            tn.conv_transpose(x, v, strides=2, padding=1),
            tn.conv(x, each, strides=2, padding=2, groups=16),
        )

    f = tn.jit(all_ways)
    words = f.plan(x, w, v, each).explain()
    assert "directly: 16 groups of 1 out channels by 25 terms" in words
    assert "in panels: 24 out channels by 144 terms" in words
    before, found = tn.config.threads, set()
    try:
        for threads in (1, 2, 3, 8):
            tn.config.threads = threads
            found.add(b"".join(y.tobytes() for y in f(x, w, v, each)))
    finally:
        tn.config.threads = before
    assert len(found) == 1


def test_other_sizes_come_by_the_same_code() -> None:
    random = np.random.default_rng(3)
    f = tn.jit(lambda x, w: tn.conv(x, w, padding=1, strides=2))
    for n, c, o, space in ((1, 4, 8, 30), (2, 5, 9, 31), (3, 8, 16, 64)):
        x, w = (
            random.integers(-3, 4, s).astype("f4") for s in ((n, c, space, space), (o, c, 3, 3))
        )
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        out = ((space + 2 - 3) // 2 + 1,) * 2
        np.testing.assert_array_equal(f(x, w), slid(padded, w, (2, 2), (1, 1), 1, out))


def test_refusals() -> None:
    x, w = np.ones((1, 4, 5), "f4"), np.ones((4, 2, 3), "f4")
    with pytest.raises(ShapeError, match=r"conv_transpose: .* do not meet in 3 groups"):
        tn.conv_transpose(x, w, groups=3)
    with pytest.raises(ShapeError, match=r"conv_transpose: .*4 channels against 2"):
        tn.conv_transpose(x, w[:2])
    with pytest.raises(ShapeError, match="the same spatial axes"):
        tn.conv_transpose(x, w[..., None])
    with pytest.raises(ValueProblem, match="padding='same'"):
        tn.conv_transpose(x, w, padding="same")
    with pytest.raises(ShapeError, match="conv_transpose: output_padding"):
        tn.conv_transpose(x, w, output_padding=(1, 1))
