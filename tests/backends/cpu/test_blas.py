"""The private OpenBLAS: right products, one thread, its own file."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tenfold.backends.cpu.entry.abi import Argument, CallSpec
from tenfold.backends.cpu.entry.bind import gate, make_entry
from tenfold.backends.cpu.entry.text import GATE_TEXT
from tenfold.backends.cpu.library import blas as module
from tenfold.backends.cpu.library import blas_copy
from tenfold.backends.cpu.library.blas import (
    BLAS,
    NOT_TRANSPOSED,
    ROW_MAJOR,
    TRANSPOSED,
    Blas,
    blas,
    why_not,
)
from tenfold.backends.cpu.link.loader import load
from tenfold.backends.llvm.text import Fragment, join
from tenfold.types import parse_type

here = blas()
needed = pytest.mark.skipif(here is None, reason=str(why_not()))
DTYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
FACTOR = {"s": ctypes.c_float, "d": ctypes.c_double}


def found() -> Blas:
    assert here is not None
    return here


def values(seed: int, shape: tuple[int, ...], letter: str) -> Any:
    draw = np.random.default_rng(seed)
    array = draw.integers(-8, 9, shape).astype(DTYPES[letter])
    if letter in "cz":
        array = array + 1j * draw.integers(-8, 9, shape).astype(DTYPES[letter])
    return array.astype(DTYPES[letter])  # small whole numbers: every order of summing is exact


def factor(letter: str, value: float) -> Any:
    if letter in "sd":
        return FACTOR[letter](value)
    return np.array(value, DTYPES[letter]).ctypes.data_as(ctypes.c_void_p)


def product(letter: str, a: Any, b: Any, order: int = NOT_TRANSPOSED) -> Any:
    m, k, n = a.shape[0], a.shape[1], b.shape[1 if order == NOT_TRANSPOSED else 0]
    c = np.empty((m, n), DTYPES[letter])
    real = FACTOR.get(letter, ctypes.c_void_p)
    size, pointer = ctypes.c_int64, ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(
        None, *[ctypes.c_int] * 3, size, size, size, real, pointer, size, pointer, size, real,
        pointer, size,
    )  # fmt: skip
    one, zero = factor(letter, 1), factor(letter, 0)
    call = kind(found().symbols[f"tn_{letter}gemm"])
    call(ROW_MAJOR, NOT_TRANSPOSED, order, m, n, k, one, a.ctypes.data, k, b.ctypes.data,
         b.shape[1], zero, c.ctypes.data, n)  # fmt: skip
    return c


@needed
@pytest.mark.parametrize("letter", "sdcz")
def test_products(letter: str) -> None:
    a, b = values(0, (37, 53), letter), values(1, (53, 29), letter)
    np.testing.assert_array_equal(product(letter, a, b), a @ b)
    flipped = np.ascontiguousarray(b.T)
    np.testing.assert_array_equal(product(letter, a, flipped, TRANSPOSED), a @ b)


@needed
@pytest.mark.parametrize("letter", "sdcz")
def test_products_with_a_vector(letter: str) -> None:
    a, x = values(2, (31, 17), letter), values(3, (17,), letter)
    y = np.empty(31, DTYPES[letter])
    real = FACTOR.get(letter, ctypes.c_void_p)
    size, pointer = ctypes.c_int64, ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(
        None, ctypes.c_int, ctypes.c_int, size, size, real, pointer, size, pointer, size, real,
        pointer, size,
    )  # fmt: skip
    call = kind(found().symbols[f"tn_{letter}gemv"])
    call(ROW_MAJOR, NOT_TRANSPOSED, 31, 17, factor(letter, 1), a.ctypes.data, 17, x.ctypes.data, 1,
         factor(letter, 0), y.ctypes.data, 1)  # fmt: skip
    np.testing.assert_array_equal(y, a @ x)


@needed
def test_a_product_inside_a_plan(assemble: Callable[[str], bytes]) -> None:
    body = """
define i32 @plan(ptr %table, ptr %arena, ptr %poll) {
  %b.at = getelementptr ptr, ptr %table, i64 1
  %c.at = getelementptr ptr, ptr %table, i64 2
  %a = load ptr, ptr %table
  %b = load ptr, ptr %b.at
  %c = load ptr, ptr %c.at
  call void @tn_sgemm(i32 101, i32 111, i32 111, i64 8, i64 4, i64 6, float 1.0, ptr %a, i64 6,
      ptr %b, i64 4, float 0.0, ptr %c, i64 4)
  ret i32 0
}
"""
    image = load([assemble(join([BLAS, Fragment((), body)]))], ["plan"], found().symbols)
    types = [parse_type(text) for text in ("f32[8,6]", "f32[6,4]", "f32[8,4]")]
    entry = CallSpec("dot", "plan", (Argument(types[0]), Argument(types[1])), (types[2],))
    a, b = values(4, (8, 6), "s"), values(5, (6, 4), "s")
    call = make_entry(entry, image, gate(lambda: assemble(GATE_TEXT)), print).call
    np.testing.assert_array_equal(call(a, b), a @ b)


@needed
def test_many_threads_at_once() -> None:
    pairs = [(values(k, (120, 90), "d"), values(k + 50, (90, 110), "d")) for k in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for (a, b), c in zip(pairs, pool.map(lambda p: product("d", *p), pairs), strict=True):
            np.testing.assert_array_equal(c, a @ b)


@needed
def test_after_a_fork() -> None:
    a = values(9, (200, 200), "d")
    expected = product("d", a, a)
    child = os.fork()
    if child == 0:
        os._exit(0 if (product("d", a, a) == expected).all() else 1)
    assert os.waitpid(child, 0)[1] == 0


PRIVATE = """
import ctypes, os, sys
import numpy as np
from pathlib import Path

a = np.ones((300, 300))
a @ a
def threads():
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
before, environment = threads(), dict(os.environ)
from tenfold.backends.cpu.library.blas import blas
from tenfold.backends.cpu.library.blas_copy import source_file
found = blas()
assert threads() == before, "it started threads"
assert dict(os.environ) == environment
own = ctypes.CDLL(str(source_file()))
assert own.scipy_openblas_get_num_threads64_() == 2, "NumPy's own setting was changed"
copy = ctypes.CDLL(found.path)
assert copy.scipy_openblas_get_num_threads64_() == 1
assert found.path != str(source_file())
print(found.path)
"""


def run(script: str, **variables: str) -> str:
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2"} | variables
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@needed
def test_it_is_private_and_its_file_is_used_again(tmp_path: Path) -> None:
    paths = [run(PRIVATE, XDG_CACHE_HOME=str(tmp_path)) for _ in range(2)]
    assert paths[0] == paths[1]
    assert Path(paths[0]).is_relative_to(tmp_path)
    files = list(Path(paths[0]).parent.iterdir())
    assert [file.name for file in files] == [Path(paths[0]).name]


@needed
def test_a_copy_of_the_wrong_size_is_made_anew(tmp_path: Path) -> None:
    path = Path(run(PRIVATE, XDG_CACHE_HOME=str(tmp_path)))
    path.write_bytes(b"half")
    (path.parent / "partial-old").write_bytes(b"left behind")
    os.utime(path.parent / "partial-old", (0, 0))
    assert run(PRIVATE, XDG_CACHE_HOME=str(tmp_path)) == str(path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_only_copies_are_swept(tmp_path: Path) -> None:
    copy, notes = tmp_path / f"{'0' * 16}-libscipy_openblas64_-1.so", tmp_path / "notes.txt"
    for path in (copy, notes, tmp_path / "libscipy_openblas64_mine.so"):
        path.write_bytes(b"old")
        os.utime(path, (0, 0))
    blas_copy._sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "libscipy_openblas64_mine.so",
        "notes.txt",
    ]


@needed
def test_a_folder_open_to_others_is_not_used(tmp_path: Path) -> None:
    shared = tmp_path / "tenfold" / "blas"
    shared.mkdir(parents=True)
    shared.chmod(0o777)
    mine = tmp_path / "mine"
    mine.mkdir()
    path = run(PRIVATE, XDG_CACHE_HOME=str(tmp_path), TMPDIR=str(mine))
    assert Path(path).is_relative_to(mine)


@needed
@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no files in memory here")
def test_with_no_folder_at_all_it_lies_in_memory(tmp_path: Path) -> None:
    script = f"import tempfile; tempfile.tempdir = '/dev/null/none'\n{PRIVATE}"
    assert run(script, XDG_CACHE_HOME="/dev/null/none").startswith("/proc/self/fd/")


def test_where_numpy_brings_no_library_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas_copy, "source_file", lambda: None)
    module._find.cache_clear()
    try:
        assert blas() is None
        assert "OpenBLAS" in str(why_not())
    finally:
        monkeypatch.undo()
        module._find.cache_clear()
