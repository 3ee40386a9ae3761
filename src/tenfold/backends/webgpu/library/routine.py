"""Routines of nodes: what is done on an adapter to carry one out, by shaders of our own.

A routine hangs on types, on the node's attributes and on the target alone; the text of its shader
on less than that, so that one serves many sizes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from tenfold.backends.webgpu.shader import BoundDispatch, BoundShader, Shader, spread
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.frozen import frozen
from tenfold.graph.op import CONVOLUTION, PRODUCT
from tenfold.types import TensorType

SORTS, GREATEST = ("sort", "argsort"), "top_few"
RUNNING = ("cumsum", "cumprod", "cummax", "cummin")
ROUTINES = frozenset((PRODUCT, CONVOLUTION, *RUNNING, *SORTS, GREATEST))

Given = Mapping[str, Any]


@frozen
class Launch:
    """One dispatch: an entry point, how many groups run it, and its words of 32 bits."""

    entry: str
    groups: int
    words: tuple[int, ...]


@frozen
class Routine:
    """How a node is carried out. Buffers of the shader are the node's inputs, then its outputs;
    `largest` are the bytes of the largest, `scratch` those of memory between dispatches."""

    shader: Shader
    launches: tuple[Launch, ...]
    largest: int
    scratch: tuple[int, ...] = ()

    def bound(self, starts: Sequence[int]) -> BoundShader:
        """What is to be done where buffers begin at these elements of what is bound."""
        made = []
        for one in self.launches:
            words = struct.pack(f"<{len(one.words) + len(starts)}I", *one.words, *starts)
            made.append(BoundDispatch(one.entry, spread(one.groups), words))
        return BoundShader(tuple(made), self.scratch)


def routine_of(
    name: str, types: Sequence[TensorType], given: Given, target: WebGPUTarget
) -> Routine | None:
    """The routine of a node with inputs of these types, or None where there is none here, or where
    an array is larger than what a shader is shown of one. It is asked for again and again."""
    return _kept(name, tuple(types), tuple(given.items()), target)


@lru_cache(maxsize=128)
def _kept(
    name: str,
    types: tuple[TensorType, ...],
    given: tuple[tuple[str, Any], ...],
    target: WebGPUTarget,
) -> Routine | None:
    found = _found(name, types, dict(given), target)
    shown = target.storage_bytes - target.alignment  # it may begin amid what is bound
    if found is None or max(found.largest, *found.scratch, 0) > shown:
        return None
    return found


def _found(
    name: str, types: Sequence[TensorType], given: Given, target: WebGPUTarget
) -> Routine | None:
    if name == PRODUCT:
        from tenfold.backends.webgpu.library.product import product_routine

        return product_routine(types, given, target)
    if name == CONVOLUTION:
        from tenfold.backends.convolutions import convolution_of
        from tenfold.backends.webgpu.library.convolution import convolution_routine

        sizes = convolution_of(types, given)
        return None if sizes is None else convolution_routine(sizes, target)
    if name in SORTS:
        from tenfold.backends.webgpu.library.sort import sort_routine

        return sort_routine(name, types[0], given)
    if name == GREATEST:
        from tenfold.backends.webgpu.library.sort import greatest_routine

        return greatest_routine(types[0], given["k"])
    if name in RUNNING:
        from tenfold.backends.webgpu.library.running import running_routine

        return running_routine(name, types[0], given, target)
    return None
