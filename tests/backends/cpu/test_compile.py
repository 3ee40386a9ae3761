"""Modules of kernels: many at once, equal ones once, free of addresses, honest about libm."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator

import numpy as np
import pytest

from tenfold.backends.cpu.link.archive import members
from tenfold.backends.cpu.link.compile import (
    compile_kernels,
    module_text,
    prepare,
)
from tenfold.backends.cpu.link.elf import IMPORTED, read
from tenfold.backends.cpu.link.loader import load
from tenfold.backends.cpu.schedule.schedule import tune
from tenfold.backends.llvm import functions
from tenfold.backends.llvm.support import missing
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.errors import Unsupported
from tenfold.kernel import Builder, Kernel
from tenfold.kernel.ir.kernel import COMPARISONS, ELEMENTWISE
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.types import DTYPES
from tests.backends.cpu.running import HOST, TARGETS, Program, every_target, mapped, random


def test_frames_end_with_pages_where_registers_are_few() -> None:
    b = Builder()
    x, out = b.buffer("f32", 100), b.buffer("f32", 100, "write")
    i = b.axis(100)
    b.store(out, i, b.op("exp", "f32", b.load(x, i)))
    for target in TARGETS.values():
        code, _ = prepare(SizedKernel(b.finish()), target)
        few = target.arch == "x86_64" and target.vector_bytes < 64
        assert ("align 4096" in code.fragment.body) == few


def chain(length: int, scale: float = 2.5, extent: int = 100) -> Kernel:
    b = Builder()
    x, out = b.buffer("f32", extent), b.buffer("f32", extent, "write")
    i = b.axis(extent)
    v = b.load(x, i)
    for n in range(length):
        v = b.op(("add", "mul", "max")[n % 3], "f32", v, b.literal("f32", scale + n))
    b.store(out, i, v)
    return b.finish()


def test_many_kernels_in_one_module() -> None:
    kernels = [chain(n) for n in range(1, 8)]
    module = compile_kernels(map(SizedKernel, [*kernels, *kernels]), HOST)
    names = list(dict.fromkeys(k.name for k in module.kernels))
    assert len(names) == 7
    image = load([module.data], names)
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)
    x, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    table = np.array([x.ctypes.data, out.ctypes.data], np.uint64)
    params = np.zeros((8, 4), np.float32)
    params[:, 0] = [2.5 + n for n in range(8)]
    assert kind(image.address(names[0]))(table.ctypes.data, params.ctypes.data, 0, 100) == 0
    assert (out == x + np.float32(2.5)).all()


def test_equal_kernels_are_compiled_once() -> None:
    """Numbers in the code are parameters: they make no other kernel."""
    kernels = [chain(3), chain(4), chain(4, scale=9.5), chain(5)]
    names = [k.name for k in compile_kernels(map(SizedKernel, kernels), HOST).kernels]
    assert names[1] == names[2]
    assert len(set(names)) == 3


def test_the_same_bytes_every_time() -> None:
    assert compile_kernels([SizedKernel(chain(9))], HOST) == compile_kernels(
        [SizedKernel(chain(9))], HOST
    )


def test_long_chains() -> None:
    """A kernel of many instructions still compiles, with no deep recursion."""
    kernel = chain(1200)
    x, out = np.full(100, 0.5, np.float32), np.zeros(100, np.float32)
    params = [np.float32(0.25).tobytes()] * len(kernel.params)
    Program(kernel)(x, out, params=params)
    want = np.float32(0.5)
    for n in range(1200):
        c = np.float32(0.25)
        want = (want + c, want * c, max(want, c))[n % 3]
    np.testing.assert_allclose(out, want, rtol=1e-6)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
def test_no_helpers_are_called(target: object) -> None:
    """Sixteen-bit floats, saturating casts and wide integers need nothing from a runtime."""
    for op, dtype, result in (
        ("add", "bf16", "bf16"),
        ("mul", "f16", "f16"),
        ("floordiv", "i64", "i64"),
        ("floordiv", "i32", "i32"),
        ("floor", "f32", "f32"),
        ("round", "f64", "f64"),
        ("exp", "f16", "f16"),
        ("tanh", "bf16", "bf16"),
    ):
        arity = 1 if op in ("floor", "round", "exp", "tanh") else 2
        data = compile_kernels([SizedKernel(mapped(op, dtype, result, arity, (100,)))], target).data  # type: ignore[arg-type]
        for name in re.findall(rb"__\w+f\w*|\w+f2\w*", data):
            assert not re.match(rb"__(trunc|extend|fix|float)\w+", name), (op, dtype, name)
    b = Builder()
    i = b.axis(40)
    x, out = b.buffer("f64", 40), b.buffer("f16", 40, "write")
    b.store(out, i, b.cast(b.load(x, i), "f16"))
    assert b"__trunc" not in compile_kernels([SizedKernel(b.finish())], target).data  # type: ignore[arg-type]


def every_instruction() -> Iterator[Kernel]:
    """A kernel for each elementwise instruction and dtype that the CPU has."""
    for name, arity in sorted(ELEMENTWISE.items()):
        for dtype in DTYPES:
            result = "bool" if name in COMPARISONS else "u8" if name == "popcount" else dtype
            if name in ("abs", "real", "imag"):
                result = {"c64": "f32", "c128": "f64"}.get(dtype, dtype)
            if name != "complex" and missing(name, (dtype,) * arity, result, HOST) is None:
                yield mapped(name, dtype, result, arity, (50,))
    for source in DTYPES:
        for dtype in DTYPES:
            b = Builder()
            i, x, out = b.axis(50), b.buffer(source, 50), b.buffer(dtype, 50, "write")
            if not (source.startswith("c") and not dtype.startswith("c")):
                b.store(out, i, b.cast(b.load(x, i), dtype))
                yield b.finish()


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
def test_objects_import_no_library(target: LLVMTarget) -> None:
    """No instruction on any dtype needs a maths library, or a helper of a compiler's runtime."""
    module = compile_kernels(map(SizedKernel, [*every_instruction(), chain(5)]), target)
    found = [symbol for data in members(module.data) for symbol in read(data).symbols]
    imported = {name for name, _, section, _ in found if section == IMPORTED and name}
    assert imported <= {"memset", "memcpy"}


def test_what_the_cpu_cannot_do_says_so() -> None:
    with pytest.raises(Unsupported, match="exp of c64"):
        prepare(SizedKernel(mapped("exp", "c64", "c64", 1, (5,))), HOST)
    with pytest.raises(Unsupported, match="shl of f32"):
        prepare(SizedKernel(mapped("shl", "f32", "f32", 2, (5,))), HOST)


def test_text_is_a_function_of_kernel_and_target() -> None:
    kernel = tune(chain(6))
    texts = {module_text([prepare(SizedKernel(kernel), HOST)[0]], HOST) for _ in range(3)}
    assert len(texts) == 1


def curves(count: int, extent: int) -> Kernel:
    """So many functions of one value, a long one and a short one in turn."""
    b = Builder()
    i, x, out = b.axis(extent), b.buffer("f64", extent), b.buffer("f64", extent, "write")
    value = b.load(x, i)
    for n in range(count):
        value = b.op("add", "f64", b.op("exp" if n % 2 else "sin", "f64", value), b.load(x, i))
    b.store(out, i, value)
    return b.finish()


@every_target
@pytest.mark.parametrize("extent", [1, 50])
def test_what_is_called_often_is_called_out_of_line(
    target: LLVMTarget, extent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, got, wanted = random((extent,), "f64"), np.zeros(extent), np.zeros(extent)
    monkeypatch.setattr(functions, "BRIEF", 10**9)
    few, many = Program(curves(4, extent), target), Program(curves(100, extent), target)
    assert "@tenfold.shared." not in few.text
    assert "@tenfold.shared.sin.f64" in many.text
    many(x, got)
    monkeypatch.setattr(functions, "INLINED", 10**9)
    inlined = Program(curves(100, extent), target)
    assert "@tenfold.shared." not in inlined.text
    inlined(x, wanted)
    assert got.tobytes() == wanted.tobytes()


@every_target
def test_functions_out_of_line_go_through_wide_vectors_by_parts(
    target: LLVMTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, got, wanted = random((50,), "f64"), np.zeros(50), np.zeros(50)
    monkeypatch.setattr(functions, "BRIEF", 0)
    brief = Program(curves(4, 50), target)
    assert ("@tenfold.shared.sin.f64" in brief.text) is (target.vector_bytes < 64)
    lanes = target.vector_bytes // 4  # of two registers
    assert f"@tenfold.sin.f64.{lanes}(" in brief.text
    brief(x, got)
    monkeypatch.setattr(functions, "BRIEF", 10**9)
    inlined = Program(curves(4, 50), target)
    assert "@tenfold.shared." not in inlined.text
    inlined(x, wanted)
    assert got.tobytes() == wanted.tobytes()


@every_target
def test_long_functions_are_the_first_to_be_called_out_of_line(target: LLVMTarget) -> None:
    sine, power = ("sin", "f64", 16), ("exp", "f64", 16)
    call = "  %r = call <16 x double> {}(<16 x double> %x)\n".format
    needed = frozenset((sine, power))

    def text(sines: int, powers: int) -> str:
        return call(functions.symbol(*sine)) * sines + call(functions.symbol(*power)) * powers

    assert functions.shared(text(10, 10), needed, target) == (text(10, 10), needed)
    body, left = functions.shared(text(40, 40), needed, target)
    assert left == {("shared.sin", "f64", 16), power}  # with the short one alone it is not long
    assert body.count("@tenfold.shared.sin.f64.16(") == 40
    assert body.count(f"{functions.symbol(*power)}(") == 40
    assert functions.shared(text(40, 400), needed, target)[1] == {
        ("shared.sin", "f64", 16),
        ("shared.exp", "f64", 16),
    }
