"""Views: how a part of an array is found in the array that it belongs to.

A view has a root, which is no view itself, and the steps that lead from there to it. A step reads
(the part of a value) and writes (the value with another part). So a view whose root has moved on
is read anew, and what is written through it becomes the root's. Steps join where they can: a view
of a view is seldom farther from its root than a view is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tenfold.frozen import frozen

if TYPE_CHECKING:
    from tenfold.trace.array import Array
    from tenfold.types import DType, Shape


class Step(Protocol):
    """A way from an array to a view of it."""

    @property
    def trivial(self) -> bool:
        """Whether the view is the whole, as it is."""

    def read(self, base: Array, /) -> Array:
        """The view of an array, as its value is now."""

    def write(self, base: Array, part: Array, /) -> Array:
        """The value of the array after the view took this one."""

    def lay(self, base: Any, /) -> Any:
        """The view of a NumPy array, as NumPy gives it."""

    def join(self, step: Any, /) -> Step | None:
        """The step that leads as far as this one and then that; None: there is none."""


def extended(steps: tuple[Step, ...], step: Step) -> tuple[Step, ...]:
    """The steps and one more, which joins the last if it can."""
    joined = steps[-1].join(step) if steps else None
    if joined is not None:
        steps, step = steps[:-1], joined
    return steps if step.trivial else (*steps, step)


class Views:
    """What views do, whether their steps are known or not."""

    __slots__ = ()
    if TYPE_CHECKING:
        root: Array

        @property
        def steps(self) -> tuple[Step, ...]: ...

    def then(self, step: Step) -> View:
        return View(self.root, extended(self.steps, step))

    def read(self) -> Array:
        """What the root holds now, seen by this view."""
        found = self.root
        for step in self.steps:
            found = step.read(found)
        return found

    def write(self, part: Array) -> Array:
        """The root's value after this view took one."""
        bases = [self.root]
        for step in self.steps[:-1]:
            bases.append(step.read(bases[-1]))
        for step, base in zip(reversed(self.steps), reversed(bases), strict=False):
            part = step.write(base, part)
        return part

    def layout(self, root: Any = None) -> Any:
        """A NumPy array that lies as this view would: its strides say what a reshape does. Nothing
        stands behind it, so nobody may look at its elements. `root` is the layout of the root."""
        made = layout(self.root.dtype, self.root.shape) if root is None else root
        for step in self.steps:
            made = step.lay(made)
        return made


@frozen
class View(Views):
    """The root of a view, which is no view itself, and the steps from there."""

    root: Array
    steps: tuple[Step, ...] = ()

    @staticmethod
    def of(root: Array, step: Step) -> View:
        """The view of an array that a step leads to."""
        return View(root, () if step.trivial else (step,))


def layout(dtype: DType, shape: Shape) -> Any:
    """A NumPy array in C order, of which there is nothing but shape and strides."""
    strides = []
    stride = dtype.itemsize
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return as_strided(np.empty((), dtype), shape, strides[::-1])
