"""Routines of nodes: which functions carry one out on a device, and what they are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.text import Fragment
from tenfold.frozen import frozen
from tenfold.types import TensorType

if TYPE_CHECKING:
    from tenfold.backends.cuda.driver.device import Device


@frozen
class RoutineLaunch:
    """One launch of a routine's function: its name, blocks and threads, which of the routine's
    arrays it is given (inputs, outputs, then scratch), and further words of so many bytes."""

    function: str
    blocks: int
    threads: int
    arrays: tuple[int, ...]
    words: tuple[tuple[int, int], ...] = ()  # value and bytes


@frozen
class GpuRoutine:
    """How a node is carried out: the text of its functions, which hangs on dtypes alone, and their
    launches, in order."""

    text: Callable[[Any], Fragment]  # of the target
    key: str  # equal texts have equal keys
    launches: tuple[RoutineLaunch, ...]
    scratch: int = 0  # bytes


RUNNING = ("cumsum", "cumprod", "cummax", "cummin")
SORTS, GREATEST = ("sort", "argsort"), "top_few"
LINES = frozenset((*RUNNING, *SORTS, GREATEST))  # routines that work along lines of their one input


class LibraryCall(Protocol):
    """How a node is carried out where a library does it: one call into a stream.

    `call(device, stream, addresses)` is given where the routine's arrays lie, in the order that
    launches number them: inputs, outputs, then scratch, if it asks for any. All that it puts into
    the stream is kernels and copies on the device, without waiting for anything: so it may be
    called while the stream is captured into a graph, and what is captured may be launched again
    with the same addresses. The same addresses up to multiples of 16 bytes give the same bits.

    What the library needs for a shape (a handle, an algorithm) is kept by the device.
    `prepare(device, aligned)` makes it, for arrays that begin at multiples of 16 bytes or not, and
    puts nothing into a stream: so that it is no part of the first call. Else that makes it.
    """

    @property
    def made_by(self) -> str:
        """The library and its version, for whoever explains a plan."""
        ...

    @property
    def scratch(self) -> int:
        """Bytes."""
        ...

    def prepare(self, device: Device, aligned: bool) -> None: ...

    def call(self, device: Device, stream: Any, addresses: Sequence[int]) -> None: ...


Given = Mapping[str, Any]
Found = GpuRoutine | LibraryCall
Find = Callable[[Sequence[TensorType], TensorType, Given], Found | None]


def routine_of(
    name: str,
    types: Sequence[TensorType],
    result: TensorType,
    given: Given,
    target: CudaTarget,
    aligned: bool = False,
) -> Found | None:
    """The routine of a node with inputs and a first result of these types, or None where there is
    none here; `aligned` if all its arrays begin at multiples of 16 bytes."""
    from tenfold.backends.cuda.library.convolution import convolution_routine
    from tenfold.backends.cuda.library.product import product_routine
    from tenfold.backends.cuda.library.reach import REACH, reach_routine
    from tenfold.graph.op import CONVOLUTION, PRODUCT

    product = partial(product_routine, target=target, aligned=aligned)
    convolution = partial(convolution_routine, aligned=aligned)
    found: dict[str, Find] = {PRODUCT: product, CONVOLUTION: convolution, REACH: reach_routine}
    if name in found:
        return found[name](types, result, given)
    return line_routine(name, types[0], given)


def line_routine(name: str, type: TensorType, given: Given) -> GpuRoutine | None:
    """The routine of a node that works along lines of its one input, or None."""
    if name in RUNNING:
        from tenfold.backends.cuda.library.running import running_routine

        return running_routine(name, type, given)
    if name in SORTS:
        from tenfold.backends.cuda.library.sort import sort_routine

        return sort_routine(name, type, given)
    if name == GREATEST:
        from tenfold.backends.cuda.library.sort import greatest_routine

        return greatest_routine(type, given["k"])
    return None
