"""Cases: what is called of a function, and on which samples."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

DTYPES = ("bool", "i8", "u32", "i64", "f16", "f32", "f64", "c64")
FLOATS = ("f32", "f64", "c128")
REAL = ("bool", "i8", "u32", "i64", "f16", "f32", "f64")
SHAPES = ((3, 4), (2, 3, 4), (4,), (), (0, 3))
VECTORS = ((5,), (1,), (0,))
SOLVED = ("f32", "f64", "c64", "c128")
SQUARE = ((3, 3), (2, 3, 3))
MATRICES = ((3, 4), (4, 3), (2, 3, 4))


class Case:
    """What is called, on which samples, and how near NumPy's results it has to be."""

    def __init__(
        self,
        *calls: Callable[..., Any],
        shapes: tuple[tuple[int, ...], ...] = SHAPES,
        dtypes: tuple[str, ...] = DTYPES,
        fuzz: int = 64,
        compiled: bool = False,
        late: bool = False,
    ) -> None:
        self.calls = calls
        self.shapes = shapes
        self.dtypes = dtypes
        self.fuzz = fuzz  # units in the last place of the greatest result
        self.compiled = compiled
        self.late = late  # NumPy looks at values before it raises

    def samples(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        for dtype in self.dtypes:
            yield dtype, self.shapes[0]
        for shape in self.shapes[1:]:
            yield ("f64" if "f64" in self.dtypes else self.dtypes[-1]), shape


def changed(change: Callable[..., Any]) -> Callable[..., Any]:
    """What a function that writes into its argument leaves there."""

    def call(x: Any, y: Any) -> Any:
        x = np.copy(x)
        change(x, y)
        return x

    return call


def reduction(f: Any, *more: Any, **given: Any) -> Case:
    """A function with axis and keepdims."""
    given["dtypes"] = (*given.get("dtypes", DTYPES), "f32 nan")
    return Case(
        lambda x: f(x),
        lambda x: f(x, axis=0),
        lambda x: f(x, axis=-1, keepdims=True),
        lambda x: f(x, axis=(0, 1)),
        lambda x: f(x, keepdims=True),
        *more,
        **given,
    )


def along(f: Any, *more: Any, **given: Any) -> Case:
    """A function with one axis."""
    return Case(lambda x: f(x), lambda x: f(x, axis=0), lambda x: f(x, axis=-1), *more, **given)


def plain(f: Any, *more: Any, **given: Any) -> Case:
    """A function of its own, or a call that is written out."""
    written = inspect.isfunction(f) and f.__name__ == "<lambda>"
    return Case(f if written else lambda x: f(x), *more, **given)


def transform(name: str) -> Case:
    """A Fourier transform along one axis."""
    f = getattr(np.fft, name)
    return Case(
        lambda x: f(x),
        lambda x: f(x, 6, axis=0),
        lambda x: f(x, 3, norm="ortho"),
        dtypes=("i64", "f32", "f64") if name in ("rfft", "ihfft") else (*FLOATS, "i64"),
        fuzz=512,
    )


def transforms(name: str) -> Case:
    """A Fourier transform along several axes."""
    f = getattr(np.fft, name)
    return Case(
        lambda x: f(x),
        lambda x: f(x, (3, 6), axes=(0, 1)),
        lambda x: f(x, norm="forward"),
        shapes=MATRICES,
        dtypes=(*FLOATS, "i64"),
        fuzz=512,
    )


def definite(x: Any) -> Any:
    """A matrix that is far from singular, of one that may be."""
    return np.matmul(x, np.conj(np.matrix_transpose(x))) + 9 * np.eye(3, dtype=x.dtype)
