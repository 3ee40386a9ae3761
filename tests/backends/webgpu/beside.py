"""Kernels on a WebGPU adapter beside the CPU's: they give the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.target import named as level
from tenfold.backends.webgpu.emit.emit import prepare
from tenfold.backends.webgpu.native import structs as s
from tenfold.backends.webgpu.native.buffer import Range
from tenfold.backends.webgpu.native.commands import Commands
from tenfold.backends.webgpu.native.library import Handle
from tenfold.backends.webgpu.probe import Opened, opened
from tenfold.backends.webgpu.shader import BUFFER, SCRATCH, WORDS, ZERO, Shader
from tenfold.kernel import Kernel
from tenfold.kernel.passes.generalise import generalise
from tenfold.ops.samples import anything
from tenfold.types import DTYPES
from tests.backends.cpu.running import HOST, Program

Array = np.ndarray[Any, Any]


def adapter() -> Opened:
    """The first adapter."""
    return opened()


def cpu_target(gpu: Opened) -> LLVMTarget:
    """A target whose functions are the same lists of instructions: with fma or without."""
    return HOST if gpu.target.fma == HOST.fma else level("x86-64", HOST)


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
    """A kernel as it was run: its shader, and what checks found."""

    def __init__(self, shader: Shader, fault: int) -> None:
        self.shader, self.fault = shader, fault


def launched(
    kernel: Kernel, arrays: Sequence[Array], params: Sequence[bytes] = (), strict: bool = False
) -> Launched:
    """Run a kernel as it stands in plans on arrays, which are written back."""
    call = generalise(kernel)
    shader, facts = prepare(call, adapter().target, strict)
    bound = shader.bound(facts, call.sizes, params)
    return Launched(shader, run_shader(shader, bound, arrays))


@cache
def _pipeline(text: str, kinds: tuple[int, ...], entry: str) -> Handle:
    device = adapter().device
    return device.pipeline(device.shader(text), kinds, entry)


def run_shader(shader: Shader, bound: Any, arrays: Sequence[Array]) -> int:
    """Do what is to be done for a shader, and give the fault."""
    device = adapter().device
    kinds = tuple({WORDS: s.READ_ONLY_BINDING, ZERO: s.UNIFORM_BINDING}.get(
        b.kind, s.STORAGE_BINDING) for b in shader.bindings)  # fmt: skip
    places = [device.range(max(4, a.nbytes)) for a in arrays]
    for place, array in zip(places, arrays, strict=True):
        device.write(place, array)
    fault = device.range(16)
    zero = device.range(16, s.UNIFORM | s.COPY_TARGET)
    scratch = [device.range(size) for size in bound.scratch]
    commands = Commands(device)
    for one in bound.dispatches:
        pipeline = _pipeline(shader.text, kinds, one.entry)
        words = device.range(len(one.words))
        device.write(words, np.frombuffer(one.words, np.uint8))
        ranges: list[Range] = []
        for b in shader.bindings:
            others = {WORDS: words, ZERO: zero}.get(b.kind, fault)
            if b.kind in (BUFFER, SCRATCH):
                others = (places if b.kind == BUFFER else scratch)[b.number]
            ranges.append(others)
        commands.dispatch(pipeline, device.bind_group(kinds, ranges), one.groups)
    sizes = [-(-max(4, a.nbytes) // 16) * 16 for a in arrays]
    starts = np.cumsum([16, *sizes]).tolist()
    staging = device.buffer(starts[-1], s.MAP_READ | s.COPY_TARGET)
    commands.copy(fault, staging, 0)
    for place, start in zip(places, starts[:-1], strict=True):
        commands.copy(place, staging, start)
    commands.submit()
    found = np.zeros(1, np.uint32)
    parts = [(start, array) for start, array in zip(starts[:-1], arrays, strict=True)]
    device.read(staging, [(0, found), *parts])
    return int(found[0])


def beside(
    kernel: Kernel, *arrays: Array, params: Sequence[bytes] = (), strict: bool = False
) -> Launched:
    """Run a kernel on both, and see that the CPU's bits come out in every buffer."""
    program = Program(kernel, cpu_target(adapter()), strict=strict)
    given = [np.ascontiguousarray(a) for a in arrays]
    want, got = [a.copy() for a in given], [a.copy() for a in given]
    fault = int(program.bind(want, params)())
    done = launched(program.kernel, got, params, strict)
    for n, (one, other) in enumerate(zip(got, want, strict=True)):
        assert equal(one, other), f"buffer {n}: {first(one, other)}\n{program.kernel}"
    assert done.fault == fault
    return done


def first(got: Array, want: Array) -> str:
    """Where two arrays differ first."""
    got, want = got.reshape(-1), want.reshape(-1)
    wrong = [n for n in range(got.size) if not equal(got[n : n + 1], want[n : n + 1])]
    at = wrong[0]
    return f"{len(wrong)} of {got.size} differ, at {at}: {got[at]!r}, not {want[at]!r}"
