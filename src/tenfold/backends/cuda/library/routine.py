"""Routines of nodes: which functions carry one out on a device, and what they are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.text import Fragment
from tenfold.frozen import frozen
from tenfold.types import TensorType

if TYPE_CHECKING:
    from tenfold.backends.cuda.driver.device import Device


FAULT = -1  # in place of an array's number: the word that faults are told by


@frozen
class RoutineLaunch:
    """One launch of a routine's function: its name, blocks and threads, which of the routine's
    arrays it is given (inputs, outputs, then scratch; or `FAULT`), and further words of so many
    bytes."""

    function: str
    blocks: int
    threads: int
    arrays: tuple[int, ...]
    words: tuple[tuple[int, int], ...] = ()  # value and bytes


RUNNING = ("cumsum", "cumprod", "cummax", "cummin")
SORTS, GREATEST = ("sort", "argsort"), "top_few"
REACH = "reach"
FOURIER = ("fft", "rfft", "irfft")
FACTORED = frozenset(("cholesky", "det", "eigh", "inv", "lu", "qr", "slogdet", "solve", "svd",
                      "triangular_solve"))  # fmt: skip
LINES = frozenset((*RUNNING, *SORTS, GREATEST))  # routines that work along lines of their one input


class LibraryCall(Protocol):
    """What a library does for a node: one call into a stream.

    `call(device, stream, addresses)` is given where the routine's arrays lie, in the order that
    launches number them: inputs, outputs, then scratch, if it asks for any, and last the memory
    that the library asks for besides. All that it puts into the stream is kernels and copies on the
    device. Where it is `captured` it waits for nothing: so it may be called while the stream is
    captured into a graph, and what is captured may be launched again with the same addresses. The
    same addresses up to multiples of 16 bytes give the same bits.

    What the library needs for a shape (a handle, an algorithm) is kept by the device.
    `prepare(device, aligned)` makes it, for arrays that begin at multiples of 16 bytes or not, and
    puts nothing into a stream: so that it is no part of the first call. It gives the bytes that the
    library asks for besides.
    """

    @property
    def made_by(self) -> str:
        """The library and its version, for whoever explains a plan."""
        ...

    @property
    def captured(self) -> bool: ...

    def prepare(self, device: Device, aligned: bool) -> int: ...

    def call(self, device: Device, stream: Any, addresses: Sequence[int]) -> None: ...


@frozen
class GpuRoutine:
    """How a node is carried out: launches of functions of ours and calls of libraries, in order,
    and the text of the functions, which hangs on dtypes alone. If it `checks`, a function sets the
    fault word where something is left unsolved: then the evaluator does the node."""

    text: Callable[[CudaTarget], Fragment]
    key: str  # equal texts have equal keys; "" where there are no functions of ours
    launches: tuple[RoutineLaunch | LibraryCall, ...]
    scratch: int = 0  # bytes
    checks: bool = False

    @property
    def functions(self) -> tuple[RoutineLaunch, ...]:
        """The launches of functions of ours."""
        return tuple(one for one in self.launches if isinstance(one, RoutineLaunch))

    @property
    def captured(self) -> bool:
        """Whether it can be a part of a graph."""
        return all(isinstance(one, RoutineLaunch) or one.captured for one in self.launches)

    @property
    def made_by(self) -> str:
        """The libraries that take part, with their versions."""
        calls = (one for one in self.launches if not isinstance(one, RoutineLaunch))
        return " and ".join(dict.fromkeys(call.made_by for call in calls))


def of_library(call: LibraryCall, scratch: int) -> GpuRoutine:
    """The routine that is one call of a library."""
    return GpuRoutine(lambda target: Fragment((), ""), "", (call,), scratch)


Given = Mapping[str, Any]


def routine_of(
    name: str,
    types: Sequence[TensorType],
    result: TensorType,
    given: Given,
    target: CudaTarget,
    aligned: bool = False,
) -> GpuRoutine | None:
    """The routine of a node with inputs and a first result of these types, or None where there is
    none here; `aligned` if all its arrays begin at multiples of 16 bytes."""
    from tenfold.graph.op import CONVOLUTION, PRODUCT

    if name == PRODUCT:
        from tenfold.backends.cuda.library.product import product_routine

        return product_routine(types, result, given, target=target, aligned=aligned)
    if name == CONVOLUTION:
        from tenfold.backends.cuda.library.convolution import convolution_routine

        return convolution_routine(types, result, given, aligned=aligned)
    if name in FOURIER:
        from tenfold.backends.cuda.library.fourier import fourier_routine

        return fourier_routine(name, types[0], given, target=target, aligned=aligned)
    if name in FACTORED:
        from tenfold.backends.cuda.library.factoring import factoring_routine

        return factoring_routine(name, types, given, target)
    if name == REACH:
        from tenfold.backends.cuda.library.reach import reach_routine

        return reach_routine(types, result, given)
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
