"""Two products with work on rows between them: a block of rows at a time, with the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.target import host_target
from tenfold.cache.memory import plans
from tenfold.plan.passes import row_blocks

Array = np.ndarray[Any, Any]
SQUARE = 3 * 128 * 256  # elements between the products


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blocks, "_LEAST", 1 << 16)
    monkeypatch.setattr(row_blocks, "_BLOCK", 1 << 16)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def plain(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.swapaxes(-1, -2)) @ v


def scaled(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.swapaxes(-1, -2) * 0.25) @ v


def laid(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.reshape(*q.shape[:-2], -1, k.shape[-2]) / 4) @ v


def causal(q: Any, k: Any, v: Any) -> Any:
    rows, columns = np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])
    return softmax(np.where(rows >= columns, q @ k.swapaxes(-1, -2), -np.inf)) @ v


def masked(mask: Array) -> Any:
    return lambda q, k, v: softmax(q @ k.swapaxes(-1, -2) + mask.astype(q.dtype)) @ v


def without_softmax(q: Any, k: Any, v: Any) -> Any:
    return np.maximum(q @ k.swapaxes(-1, -2), 0) @ v


def drawn(*shapes: tuple[int, ...], dtype: str = "f8") -> list[Array]:
    generator = np.random.default_rng(3)
    return [generator.standard_normal(shape).astype(dtype) for shape in shapes]


MASKS = [(128, 256), (256,), (3, 128, 256), (3, 1, 256), (3, 128, 1), (1, 1, 256)]
PROGRAMS = {
    **{one.__name__: one for one in (plain, scaled, laid, causal, without_softmax)},
    **{f"mask {shape}": masked(drawn(shape)[0]) for shape in MASKS},
}


def whole_of(f: Any, given: list[Array], monkeypatch: pytest.MonkeyPatch) -> tuple[Array, int]:
    """What comes of it without blocks, and how much memory that takes."""
    with monkeypatch.context() as patch:
        patch.setattr(row_blocks, "_LEAST", 1 << 60)
        jitted = tn.jit(f)
        found = jitted(*given), jitted.plan(*given).peak_bytes
    plans.clear()
    return found


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_blocks_give_what_the_whole_gives(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = PROGRAMS[name]
    given = drawn((3, 128, 16), (3, 256, 16), (3, 256, 24), dtype=dtype)
    whole, memory = whole_of(f, given, monkeypatch)
    jitted = tn.jit(f)
    made = jitted(*given)
    close = 2e-4 if dtype == "f4" else 1e-12
    np.testing.assert_allclose(made, f(*given), rtol=close, atol=close)
    if host_target().masked:  # panels multiply: bits do not hang on the number of rows
        np.testing.assert_array_equal(made, whole)
    assert jitted.plan(*given).peak_bytes < memory / 2
    assert memory >= SQUARE * made.itemsize


def test_no_batch_or_several_axes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for batch in ((), (1, 3), (2, 3)):
        shapes = ((*batch, 256, 16), (*batch, 256, 16), (*batch, 256, 16))
        given = drawn(*shapes)
        whole, memory = whole_of(scaled, given, monkeypatch)
        jitted = tn.jit(scaled)
        np.testing.assert_allclose(jitted(*given), whole, atol=1e-12)
        assert jitted.plan(*given).peak_bytes < memory / 2
    mask = drawn((2, 1, 1, 256))[0]
    padded = tn.jit(lambda q, k, v, m: softmax(q @ k.swapaxes(-1, -2) + m) @ v)
    made = padded(*given, mask)
    np.testing.assert_allclose(made, masked(mask)(*given), atol=1e-12)
    assert padded.plan(*given, mask).peak_bytes < memory / 2


@pytest.mark.parametrize(
    "f",
    [
        lambda q, k, v: (s := q @ k.swapaxes(-1, -2), softmax(s) @ v),  # it is handed out
        lambda q, k, v: (s := softmax(q @ k.swapaxes(-1, -2))) @ v + s @ (v + 1),
        lambda q, k, v: softmax((q @ k.swapaxes(-1, -2)).swapaxes(-1, -2)) @ v[:, :128],
        lambda q, k, v: (s := q @ k.swapaxes(-1, -2)) / s.sum(axis=1, keepdims=True) @ v,
        lambda q, k, v: np.flip(q @ k.swapaxes(-1, -2), 1) @ v,  # rows are another's
    ],
)
def test_what_does_not_keep_to_rows_stays_whole(f: Any) -> None:
    given = drawn((3, 128, 16), (3, 256, 16), (3, 256, 24))
    jitted = tn.jit(f)
    made, wanted = jitted(*given), f(*given)
    for one, other in zip(made, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    assert not any(step.kind == "loop" for step in jitted.plan(*given).steps)


def test_rows_that_no_block_divides_stay_whole() -> None:
    given = drawn((3, 131, 16), (3, 256, 16), (3, 256, 24))
    jitted = tn.jit(scaled)
    np.testing.assert_allclose(jitted(*given), scaled(*given), atol=1e-12)
    assert not any(step.kind == "loop" for step in jitted.plan(*given).steps)


def test_a_product_in_a_row_of_them_ends_one_chain_or_begins_one() -> None:
    given = drawn((256, 16), (16, 256), (256, 16), (16, 256), (256, 16))
    jitted = tn.jit(lambda a, b, c, d, e: a @ b @ c @ d @ e)
    a, b, c, d, e = given
    np.testing.assert_allclose(jitted(*given), a @ b @ c @ d @ e, rtol=1e-12)
    assert sum(step.kind == "loop" for step in jitted.plan(*given).steps) == 2


def test_layers_of_weights_stay_whole() -> None:
    """A block would read all of the weights again."""
    given = drawn((256, 128), (128, 256), (256, 128))
    jitted = tn.jit(lambda x, w, v: np.maximum(x @ w, 0) @ v)
    x, w, v = given
    np.testing.assert_allclose(jitted(*given), np.maximum(x @ w, 0) @ v, rtol=1e-12)
    assert not any(step.kind == "loop" for step in jitted.plan(*given).steps)
