"""Modules are compiled at once, and come out as if they were compiled one after another."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

from tenfold.backends.cpu import assemble as module
from tenfold.backends.cpu.archive import members, pack
from tenfold.backends.cpu.assemble import assemble, assemble_all
from tenfold.backends.cpu.compile import BATCH, MODULES, batches, compile_kernels, prepare
from tenfold.backends.cpu.loader import load
from tenfold.backends.cpu.target import host_target
from tenfold.errors import FileError
from tenfold.kernel import Builder, Kernel

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


KERNELS = [chain(n) for n in (90, 3, 80, 40, 70, 60, 5, 50, 100, 65)]


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [
        f"define i64 @f{n}(i64 %x) {{\n  %y = mul i64 %x, {n}\n  ret i64 %y\n}}" for n in range(9)
    ]
    alone = [assemble(text, HOST) for text in texts]
    for processors in (1, 2, 8):
        monkeypatch.setattr(module, "_processors", lambda many=processors: many)
        assert assemble_all(texts, HOST) == alone
        assert compile_kernels(KERNELS, HOST) == compile_kernels(KERNELS, HOST)
    monkeypatch.setattr(module, "_unlocked", lambda: None)
    assert assemble_all(texts, HOST) == alone


def test_kernels_are_parted_evenly_whatever_the_machine() -> None:
    codes = [prepare(kernel, HOST)[0] for kernel in KERNELS]
    parts = batches(codes)
    sizes = [sum(code.size for code in part) for part in parts]
    assert len(parts) == MODULES
    assert max(sizes) <= min(sizes) + max(code.size for code in codes)
    assert sorted(code.name for part in parts for code in part) == sorted(c.name for c in codes)
    small = [codes[1], codes[6]]
    assert sum(code.size for code in small) < BATCH
    assert batches(small) == [small]
    assert batches([]) == [[]]


def test_an_archive_is_loaded_as_one_image() -> None:
    made = compile_kernels(KERNELS, HOST)
    assert len(members(made.data)) == MODULES
    image = load([made.data], [kernel.name for kernel in made.kernels])
    assert len({image.address(kernel.name) for kernel in made.kernels}) == len(KERNELS)


def test_what_llvm_refuses_is_raised() -> None:
    with pytest.raises(RuntimeError, match="expected"):
        assemble_all(["define void @f() {\n  ret void\n}", "nonsense"], HOST)


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
