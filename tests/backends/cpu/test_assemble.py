"""Modules are compiled at once, and come out as if they were compiled one after another."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tenfold.backends.cpu.link.archive import members, pack
from tenfold.backends.cpu.link.compile import BATCH, compile_kernels, prepare
from tenfold.backends.cpu.link.loader import load
from tenfold.backends.cpu.target import host_target
from tenfold.backends.llvm import assemble as module
from tenfold.backends.llvm.assemble import Assembly, assemble
from tenfold.backends.llvm.library import KNOWN
from tenfold.errors import FileError
from tenfold.kernel import Builder, Kernel
from tenfold.kernel.ir.sized import SizedKernel

HOST = host_target()


def chain(length: int) -> Kernel:
    b = Builder()
    i = b.axis(100)
    x, out = b.buffer("f32", 100), b.buffer("f32", 100, "write")
    value = b.load(x, i)
    for n in range(length):
        value = b.op(("add", "mul")[n % 2], "f32", value, b.literal("f32", 2.5 + n))
    b.store(out, i, value)
    return b.finish()


KERNELS = [SizedKernel(chain(n)) for n in (90, 3, 80, 40, 70, 60, 5, 50, 100, 65)]


def assembled(texts: list[str]) -> list[bytes]:
    assembly = Assembly(HOST)
    for text in texts:
        assembly.add(text)
    return assembly.finish()


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [
        f"define i64 @f{n}(i64 %x) {{\n  %y = mul i64 %x, {n}\n  ret i64 %y\n}}" for n in range(9)
    ]
    alone = [assemble(text, HOST) for text in texts]
    for processors in (1, 2, 8):
        monkeypatch.setattr(module, "processors", lambda many=processors: many)
        assert assembled(texts) == alone
        assert compile_kernels(KERNELS, HOST) == compile_kernels(KERNELS, HOST)
    monkeypatch.setattr(module, "_unlocked", lambda: None)
    assert assembled(texts) == alone


DIRECTLY = """
import sys
from tenfold.backends.cpu.run.fixed import TEXTS
from tenfold.backends.cpu.target import host_target
from tenfold.backends.llvm.assemble import _Tools, assemble
from tenfold.backends.llvm.library import library

target = host_target()
texts = [text(target) for text in TEXTS.values()]
assert library(target.llvmlite) is not None
made = [assemble(text, target) for text in texts]
looped = [assemble(text, target, loops=True) for text in texts]
assert looped != made  # memory on the stack became registers
for _ in range(2):
    try:
        assemble("define nonsense", target)
    except RuntimeError as error:
        assert "parsing error" in str(error), error
    else:
        raise AssertionError
assert "llvmlite" not in sys.modules
tools = _Tools(target)
assert [tools.assemble(text) for text in texts] == made
tools = _Tools(target, loops=True)
assert [tools.assemble(text) for text in texts] == looped
assert library(target.llvmlite) is None  # llvmlite is there: its own way is taken
assert [assemble(text, target) for text in texts] == made
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not HOST.llvmlite.startswith(KNOWN), reason="llvmlite's own way"
)
def test_the_library_gives_what_llvmlite_gives() -> None:
    subprocess.run([sys.executable, "-c", DIRECTLY], check=True)


def test_kernels_are_parted_by_their_length() -> None:
    sizes = [prepare(kernel, HOST)[0].size for kernel in KERNELS]
    parts, size = 0, 0
    for one in sizes:
        size += one
        if size >= BATCH:
            parts, size = parts + 1, 0
    assert len(members(compile_kernels(KERNELS, HOST).data)) == parts + bool(size) > 2
    assert len(members(compile_kernels(KERNELS[1:2], HOST).data)) == 1
    assert compile_kernels([], HOST).kernels == ()


def test_an_archive_is_loaded_as_one_image() -> None:
    made = compile_kernels(KERNELS, HOST)
    assert len(members(made.data)) > 2
    image = load([made.data], [kernel.name for kernel in made.kernels])
    assert len({image.address(kernel.name) for kernel in made.kernels}) == len(KERNELS)


def test_what_llvm_refuses_is_raised() -> None:
    with pytest.raises(RuntimeError, match="expected"):
        assembled(["define void @f() {\n  ret void\n}", "nonsense"])


def test_ar_reads_our_archives(tmp_path: object) -> None:
    data = pack([b"odd", b"even", np.arange(9, dtype=np.uint8).tobytes()])
    path = f"{tmp_path}/a.a"
    with open(path, "wb") as file:
        file.write(data)
    try:
        done = subprocess.run(["ar", "p", path, "1"], capture_output=True, check=True)
    except FileNotFoundError:
        pytest.skip("there is no ar here")
    assert done.stdout == b"even"


@pytest.mark.parametrize("cut", [9, 30, 67, 69])
def test_a_cut_archive_is_refused(cut: int) -> None:
    with pytest.raises(FileError, match="an archive"):
        members(pack([b"odd", b"even"])[:cut])
