"""Convolutions without padding as products of matrices: their extents, and where in the input lies
what a place of the result sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from tenfold.frozen import frozen
from tenfold.graph.op import CONVOLUTION
from tenfold.ops.algebra import ways
from tenfold.ops.algebra.windows import counts
from tenfold.types import SHORT, TensorType

PLACES = ("plane", "out1", "out2", "step0", "step1", "step2", "image")
OFFSETS = ("channel", "taps", "kernel1", "kernel2", "apart0", "apart1", "apart2")


@frozen
class Convolution:
    """A product for each group: rows are its out channels, columns the places of the result in all
    images, terms the channels of the group times the places of the kernel. Extents and steps stand
    along the most axes that there may be, missing ones before the others.

    >>> from tenfold.types import parse_type
    >>> types = parse_type("f32[2,6,9,8]"), parse_type("f32[10,3,3,2]")
    >>> made = convolution_of(types, {"strides": (2, 1), "dilation": (1, 3), "groups": 2})
    >>> print(made)
    2 groups of a convolution of f32: 5 out channels by 18 terms by 40 columns
    >>> dict(zip(PLACES, made.places))
    {'plane': 20, 'out1': 4, 'out2': 5, 'step0': 0, 'step1': 16, 'step2': 1, 'image': 432}
    >>> dict(zip(OFFSETS, made.offsets))
    {'channel': 72, 'taps': 6, 'kernel1': 3, 'kernel2': 2, 'apart0': 0, 'apart1': 8, 'apart2': 3}
    """

    dtype: str
    rows: int
    groups: int
    images: int
    terms: int
    own: int  # elements of the input that an image has for a group
    out: tuple[int, int, int]
    steps: tuple[int, int, int]
    kernel: tuple[int, int, int]
    apart: tuple[int, int, int]
    channel: int  # elements of one, of the input

    @property
    def plane(self) -> int:
        return prod(self.out)

    @property
    def columns(self) -> int:
        return self.images * self.plane

    @property
    def results(self) -> int:
        return self.groups * self.rows * self.columns

    @property
    def places(self) -> tuple[int, ...]:
        """The values of `PLACES`: by these it is found where what a column sees begins."""
        return (self.plane, *self.out[1:], *self.steps, self.own * self.groups)

    @property
    def offsets(self) -> tuple[int, ...]:
        """The values of `OFFSETS`: by these it is found how far from there each term is."""
        return (self.channel, prod(self.kernel), *self.kernel[1:], *self.apart)

    def __str__(self) -> str:
        several = f"{self.groups} groups of " if self.groups > 1 else ""
        return (
            f"{several}a convolution of {self.dtype}: {self.rows} out channels by {self.terms} "
            f"terms by {self.columns} columns"
        )


def convolution_of(types: Sequence[TensorType], given: Mapping[str, Any]) -> Convolution | None:
    """A convolution over one to three axes; None for another, for one of nothing, and for dtypes
    that no routine has."""
    x, w = types
    if not ways.has_routine(x) or not x.size or not w.size:
        return None
    groups, space, kernel = given["groups"], x.shape[2:], w.shape[2:]
    out = counts(CONVOLUTION, space, kernel, given["strides"], given["dilation"])
    if not prod(out):
        return None
    each = [prod(space[n + 1 :]) for n in range(len(space))]
    steps = [n * s for n, s in zip(each, given["strides"], strict=True)]
    apart = [n * d for n, d in zip(each, given["dilation"], strict=True)]
    return Convolution(
        SHORT[x.dtype], w.shape[0] // groups, groups, x.shape[0], prod(w.shape[1:]),
        w.shape[1] * prod(space), _three(out, 1), _three(steps, 0), _three(kernel, 1),
        _three(apart, 0), prod(space),
    )  # fmt: skip


def _three(values: Sequence[int], missing: int) -> tuple[int, int, int]:
    a, b, c = (missing,) * (ways.AXES - len(values)) + tuple(values)
    return a, b, c
