"""What NumPy gives as a view is one here: a write through it reaches the base, and it is read as
the base is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import tenfold as tn
from tenfold.errors import MutationError, Unsupported

TAKEN: dict[str, Callable[[Any], Any]] = {
    "astype": lambda x: x.astype(x.dtype, copy=False),
    "np.astype": lambda x: np.astype(x, x.dtype, copy=False),
    "cast": lambda x: x.astype("f4", copy=False),
    "ii->i": lambda x: np.einsum("ii->i", x),
    "ij->ji": lambda x: np.einsum("ij->ji", x),
    "ij": lambda x: np.einsum("ij", x, optimize=True),
    "listed": lambda x: np.einsum(x, [0, 1], [1, 0]),
    "summed": lambda x: np.einsum("ij->i", x),
    "windows": lambda x: sliding_window_view(x, 2, 0, writeable=True),
    "ravel": lambda x: np.ravel(x),
    "reshape": lambda x: np.reshape(x, (-1,), copy=False),
    "atleast_1d": lambda x: np.atleast_1d(x),
    "broadcast_arrays": lambda x: np.broadcast_arrays(x, x)[0],
    "split": lambda x: np.split(x, 3)[0],
    "unstack": lambda x: np.unstack(x)[1],
    "real": lambda x: np.real(x),
    "squeeze": lambda x: np.squeeze(x),
    "moveaxis": lambda x: np.moveaxis(x, 0, 1),
    "expand_dims": lambda x: np.expand_dims(x, 0),
    "view": lambda x: x.view(),
    "nan_to_num": lambda x: np.nan_to_num(x, copy=False),
    "meshgrid": lambda x: np.meshgrid(x[0], x[1], copy=False)[0],
    "sparse": lambda x: np.meshgrid(x[0], x[1], copy=False, sparse=True)[1],
    "meshgrid copied": lambda x: np.meshgrid(x[0], x[1])[0],
    "conj": lambda x: x.conj(),
    "roll": lambda x: np.roll(x, 0),
    "flip": lambda x: np.flip(x),
    "rot90": lambda x: np.rot90(x, 4),
    "diff": lambda x: np.diff(x, 0),
}
REFUSED = ("meshgrid", "windows")  # an element stands at several places of them
NEEDS_ROWS = ("split", "unstack", "windows", "meshgrid", "sparse", "meshgrid copied")
WRITTEN: dict[str, Callable[[Any], Any]] = {
    "set": lambda y: y.__setitem__(..., 7),
    "add": lambda y: y.__iadd__(1),
    "fill": lambda y: y.fill(3),
    "copyto": lambda y: np.copyto(y, 2),
    "out": lambda y: np.add(y, 1, out=y),
}


def _both(f: Callable[[Any], Any], x: Any) -> list[Any]:
    """What a function gives traced and lazy; None where it is refused."""
    results: list[Any] = []
    for run in (lambda: tn.jit(f)(x), lambda: f(tn.asarray(x))):
        try:
            results.append([np.asarray(part) for part in run()])
        except MutationError:
            results.append(None)
    return results


CASES = [(taken, (3, 3)) for taken in TAKEN]
CASES += [(taken, (0, 0)) for taken in TAKEN if taken not in NEEDS_ROWS]


@pytest.mark.parametrize(("taken", "shape"), CASES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_write_reaches_the_base(taken: str, shape: tuple[int, int]) -> None:
    for write in WRITTEN.values():

        def f(x: Any, write: Any = write) -> Any:
            x = x.copy()
            y = TAKEN[taken](x)
            write(y)
            return x, y

        x = np.arange(float(np.prod(shape))).reshape(shape) + 1
        for found in _both(f, x):
            assert (found is None) == (taken in REFUSED)
            if found is not None:
                for got, wanted in zip(found, f(x), strict=True):
                    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("taken", TAKEN)
def test_a_view_is_read_as_its_base_is(taken: str) -> None:
    def f(x: Any) -> Any:
        x = x.copy()
        y = TAKEN[taken](x)
        x += 100
        return (y,)

    x = np.arange(9.0).reshape(3, 3)
    for (found,) in _both(f, x):
        np.testing.assert_array_equal(found, f(x)[0])


def test_astype_without_a_copy_gives_the_array_itself() -> None:
    x = tn.asarray([1.0, 2.0])
    assert x.astype(float, copy=False) is x
    assert x.astype("f8", copy=False) is x
    assert x.astype(float) is not x


@pytest.mark.parametrize(
    "shared",
    [
        lambda x: np.broadcast_to(x, (2, 3)),
        lambda x: np.broadcast_to(x, (2, 3))[1:],
        lambda x: sliding_window_view(x, 2),
        lambda x: np.diagonal(x[:, None] * x),
        lambda x: np.imag(x),
    ],
)
def test_a_read_only_view_is_not_written_even_where_its_base_is_out_of_sight(shared: Any) -> None:
    def f(x: Any) -> Any:
        y = shared(x + 1)
        y[0] = 5.0
        return y

    with pytest.raises(MutationError, match="copy it first"):
        tn.jit(f)(np.ones(3))
    with pytest.raises(MutationError, match="copy it first"):
        f(tn.ones(3))


def test_what_numpy_gives_on_the_host_is_a_view_too() -> None:
    x = tn.asarray(np.array([1 + 2j, 3j]))
    assert np.real_if_close(x) is x
    x.getfield(np.float64)[0] = 5
    assert x.tolist() == [5 + 2j, 3j]


def test_orders_of_a_ravel(compare: Callable[..., None], draw: Callable[..., Any]) -> None:
    for shape in [(), (3,), (0,), (2, 3), (2, 3, 4), (2, 0, 3), (1, 4)]:
        x = draw("f64", shape)
        for f in (
            lambda x: x.ravel("F"),
            lambda x: x.flatten("F"),
            lambda x: x.reshape(x.shape[::-1], order="F"),
        ):
            compare(f, x)
        if len([n for n in shape if n > 1]) <= 1:
            compare(lambda x: (x.T.ravel("K"), x.ravel("A")), x)


def test_an_order_that_only_memory_knows_is_refused() -> None:
    for f in (
        lambda x: x.T.ravel("K"),
        lambda x: x.ravel("K"),
        lambda x: x.reshape(-1, order="A"),
        lambda x: x.flatten("A"),
    ):
        with pytest.raises(Unsupported, match="lies in memory"):
            tn.jit(f)(np.ones((2, 3)))
        with pytest.raises(Unsupported, match="lies in memory"):
            f(tn.ones((2, 3)))
    with pytest.raises(ValueError, match="none to keep"):
        tn.ones(3).reshape(3, order="K")
