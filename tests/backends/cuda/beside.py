"""Kernels and programs on a simulated GPU beside the CPU's: they give the same bits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import simt

from tenfold.backends.cpu.backend import BACKEND as CPU
from tenfold.backends.cuda.assemble import ModuleCode
from tenfold.backends.cuda.compile import module_text, prepare
from tenfold.backends.cuda.emit.function import ARRIVED
from tenfold.backends.cuda.run.kernels import KernelCode, bound
from tenfold.backends.cuda.target import CudaTarget, named
from tenfold.backends.llvm.target import llvmlite_version
from tenfold.graph import Graph
from tenfold.graph.build import Builder as GraphBuilder
from tenfold.kernel import Kernel
from tenfold.kernel.passes.generalise import generalise
from tenfold.ops import TABLE
from tenfold.ops.samples import anything
from tenfold.types import DTYPES, TensorType
from tests.backends.cpu.running import Program
from tests.backends.cuda.simulated import SimulatedGpu, simulated

Array = np.ndarray[Any, Any]
GPU = named("sm_90", llvmlite_version())
EVERY = tuple(DTYPES)


def equal(got: Array, want: Array) -> bool:
    """Whether two arrays are equal bit for bit, any NaN being equal to any other."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    got, want = _parts(got), _parts(want)
    same = _bits(got) == _bits(want)
    if got.dtype.kind in "fV":
        same |= np.isnan(got) & np.isnan(want)
    return bool(same.all())


def _parts(x: Array) -> Array:
    x = np.ascontiguousarray(x).reshape(-1)
    return x.view(x.real.dtype) if x.dtype.kind == "c" else x


def _bits(x: Array) -> Array:
    return x.view(f"u{x.dtype.itemsize}")


def values(shape: Sequence[int] | int, dtype: str = "f32", seed: int = 0) -> Array:
    """NaN, infinities, zeros of both signs and the ends of integers among ordinary numbers."""
    with np.errstate(all="ignore"):
        return anything(np.random.default_rng(seed), DTYPES[dtype], np.empty(shape).shape)


class Launched:
    """A kernel as it was launched: its text, and the blocks and threads of each function."""

    def __init__(self, text: str, launches: Sequence[tuple[int, int]], fault: int) -> None:
        self.text, self.launches, self.fault = text, launches, fault

    @property
    def schedules(self) -> list[str]:
        """How each function is laid over threads."""
        return re.findall(r"define ptx_kernel void @tn_([a-z]+\d*)_[0-9a-f]{32}\(", self.text)


def launched(
    kernel: Kernel,
    arrays: Sequence[Array],
    params: Sequence[bytes] = (),
    odd: frozenset[int] = frozenset(),
    target: CudaTarget = GPU,
    strict: bool = False,
) -> Launched:
    """Run a kernel as it stands in plans on a simulated GPU, on copies of arrays that are then
    written back. `odd` buffers begin at no multiple of 16 bytes."""
    call = generalise(kernel)
    text, facts = prepare(call, target, strict, odd)
    whole = module_text([text], target)
    module, memory = simt.parse(whole), simt.Memory()
    names = tuple(one.name for one in text.launches)
    made = bound(KernelCode(text, facts, names, ModuleCode(target, whole)), call)
    places = []
    for n, array in enumerate(arrays):
        shift = array.itemsize if n in odd else 0
        places.append(memory.alloc(array.nbytes + 16) + shift)
        memory.write(places[-1], array)
    fault = memory.alloc(16)
    memory.fill(fault, 16, 0)
    counts = memory.alloc(ARRIVED + made.partial + 16)
    memory.fill(counts, ARRIVED, 0)
    partial = counts + ARRIVED
    for one in made.launches:
        words = made.words(one, places, params, partial, fault)
        if one.blocks:
            given = [w if isinstance(w, int) else int.from_bytes(w, "little") for w in words]
            grid, block = (one.blocks, 1, 1), (one.threads, 1, 1)
            fast = target.maths == "fast"
            simt.launch(module, one.function, grid, block, given, memory, approximate=fast)
    for array, place in zip(arrays, places, strict=True):
        array[...] = memory.read(place, array.dtype, array.shape)
    assert not memory.read(counts, np.dtype(np.uint8), (ARRIVED,)).any()  # as they were
    found = int(memory.read(fault, np.dtype(np.uint32), 1)[0])
    return Launched(whole, [(one.blocks, one.threads) for one in made.launches], found)


def beside(
    kernel: Kernel,
    *arrays: Array,
    params: Sequence[bytes] = (),
    odd: frozenset[int] = frozenset(),
    strict: bool = False,
) -> Launched:
    """Run a kernel on both, and see that the CPU's bits come out in every buffer."""
    program = Program(kernel, strict=strict)
    given = [np.ascontiguousarray(a) for a in arrays]
    want, got = [a.copy() for a in given], [a.copy() for a in given]
    fault = int(program.bind(want, params)())
    done = launched(program.kernel, got, params, odd, strict=strict)
    for n, (one, other) in enumerate(zip(got, want, strict=True)):
        assert equal(one, other), f"buffer {n}: {_first(one, other)}\n{program.kernel}"
    assert done.fault == fault
    return done


def _first(got: Array, want: Array) -> str:
    """Where two arrays differ first."""
    got, want = got.reshape(-1), want.reshape(-1)
    wrong = [n for n in range(got.size) if not equal(got[n : n + 1], want[n : n + 1])]
    at = wrong[0]
    return f"{len(wrong)} of {got.size} differ, at {at}: {got[at]!r}, not {want[at]!r}"


def graph_of(
    make: Callable[[GraphBuilder, Sequence[int]], Sequence[int]], arrays: Sequence[Array]
) -> Graph:
    """A graph of some inputs: `make` adds nodes and says which are outputs."""
    builder = GraphBuilder(TABLE)
    inputs = [builder.parameter(TensorType(a.dtype, a.shape)) for a in arrays]
    return builder.finish(make(builder, inputs), inputs)


def node_graph(op: str, arrays: Sequence[Array], attributes: Mapping[str, Any]) -> Graph:
    """A graph of one node."""
    return graph_of(lambda b, inputs: b.node(op, list(inputs), dict(attributes)), arrays)


def program_beside(graph: Graph, arrays: Sequence[Array]) -> list[tuple[str, int, int]]:
    """Run a program on both, and see that each output has the CPU's bits; the launches."""
    want = CPU.compile(graph)([a.copy() for a in arrays])
    gpu = SimulatedGpu()
    got = simulated(gpu).compile(graph)([a.copy() for a in arrays])
    for n, (one, other) in enumerate(zip(got, want, strict=True)):
        one, other = np.asarray(one), np.asarray(other)
        assert equal(one, other), f"output {n}: {_first(one, other)}\n{graph}"
    return gpu.launches
