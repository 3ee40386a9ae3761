"""Fourier transforms in plans: NumPy's loops, called without Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.library import fourier
from tenfold.backends.cpu.library.routine import routine_text
from tenfold.backends.cpu.link.loader import load
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.backends.cpu.target import host_target
from tenfold.backends.llvm.assemble import assemble
from tenfold.parity.rule.agree import disagreement, judged
from tenfold.reference import evaluate
from tenfold.types import DTYPES, TensorType

NORMS = ("backward", "ortho", "forward")
KINDS: dict[str, Callable[..., Any]] = {
    "fft": np.fft.fft,
    "ifft": np.fft.ifft,
    "rfft": lambda x, **given: np.fft.rfft(x.real, **given),
    "irfft": np.fft.irfft,
    "odd irfft": lambda x, axis, norm: np.fft.irfft(x, 2 * x.shape[axis] - 1, axis, norm),
    "hfft": np.fft.hfft,
}


def draw(dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(3)
    return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", KINDS)
def test_beside_numpy(name: str, norm: str) -> None:
    """In double precision the bits are NumPy's; in single, which NumPy at times computes in
    double, they agree."""
    shapes = ((1,), (2,), (3,), (8,), (97,), (3, 16), (2, 5, 6), (0, 4), (7, 1, 3), (300, 300))
    for shape in shapes:
        for axis in range(len(shape)):
            if shape[axis] < (2 if name in ("irfft", "hfft") else 1):  # one frequency, no points
                continue
            for dtype in ("c8", "c16"):
                x = draw(dtype, *shape)

                def transform(x: Any, axis: int = axis) -> Any:
                    return KINDS[name](x, axis=axis, norm=norm)

                graph = tn.trace(transform, x)
                plan = BACKEND.plan(graph)
                assert x.size == 0 or not plan.host_steps, plan.explain()
                (got,), (want,) = CompiledProgram(plan)([x]), evaluate(graph, [x])
                if dtype == "c16":
                    np.testing.assert_array_equal(got, want)
                else:
                    assert disagreement(got, judged(graph, [x])[0]) is None


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("name", ["fft", "ifft"])
def test_many_columns(name: str, dtype: str) -> None:
    """Of a power of 2 of points, by a routine of our own."""
    shapes = ((8, 16), (16, 17), (32, 40), (64, 33), (2, 128, 16), (3, 256, 18), (1024, 16))
    for n, shape in enumerate(shapes):
        x = draw(dtype, *shape)

        def transform(x: Any, norm: str = NORMS[n % 3]) -> Any:
            return KINDS[name](x, axis=-2, norm=norm)

        graph = tn.trace(transform, x)
        plan = BACKEND.plan(graph)
        program = CompiledProgram(plan)
        assert any("columns" in routine for routine in program.routines())
        (got,) = program([x])
        assert disagreement(got, judged(graph, [x])[0]) is None
        exact = transform(x.astype("c16"))
        off = np.abs(got - exact).max() / np.abs(exact).max()
        assert off < 2 * np.finfo(dtype).eps * np.log2(shape[-2])


def test_columns_with_nan_and_any_number_of_threads() -> None:
    x = draw("c16", 64, 300)
    x[3, 7], x[5, 20] = np.nan, np.inf
    program = CompiledProgram(BACKEND.plan(tn.trace(lambda x: np.fft.fft(x, axis=0), x)))
    before, found = tn.config.threads, []
    try:
        for threads in (1, 2, 3):
            tn.config.threads = threads
            found.append(program([x])[0])
    finally:
        tn.config.threads = before
    bad = ~np.isfinite(found[0]).all(axis=0)
    assert list(np.flatnonzero(bad)) == [7, 20]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


@pytest.mark.parametrize("name", ["ifft", "irfft"])
def test_lines_on_any_number_of_threads(name: str) -> None:
    """Also where NumPy has other bits for a line alone than for two at once, as on aarch64."""
    x = draw("c16", 301, 300)
    program = CompiledProgram(BACKEND.plan(tn.trace(KINDS[name], x)))
    wanted, before = KINDS[name](x), tn.config.threads
    try:
        for threads in (1, 2, 3):
            tn.config.threads = threads
            np.testing.assert_array_equal(program([x])[0], wanted)
    finally:
        tn.config.threads = before


@pytest.mark.parametrize(("dtype", "together"), [("c64", 4), ("c128", 2)])
def test_lines_are_parted_at_whole_vectors(dtype: str, together: int) -> None:
    """Of 16 bytes: what NumPy is called with, and where, for each part and for all of them."""
    lines, points, seen = 23, 40, []
    x = np.zeros((lines, points), DTYPES[dtype])
    given = {"axis": 1, "norm": "backward", "inverse": False}
    routine = fourier.fourier_routine("fft", TensorType(x.dtype, x.shape), given)
    assert routine is not None

    def transform(args: Any, extents: Any, steps: Any, given: int) -> None:
        seen.append(((args[0] - x.ctypes.data) // x[0].nbytes, extents[0]))

    words = ctypes.POINTER(ctypes.c_int64)
    called = ctypes.CFUNCTYPE(None, words, words, words, ctypes.c_void_p)(transform)
    symbols = dict.fromkeys(
        ("tn_transform", "tn_given"), ctypes.cast(called, ctypes.c_void_p).value or 0
    )
    host = host_target()
    code = assemble(routine_text(routine.symbol, host), host)
    image = load([code], [routine.symbol], symbols)
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)
    call = kind(image.address(routine.symbol))
    buffers = np.array([x.ctypes.data, x.ctypes.data, 0, 0], np.uint64)
    params = np.array(routine.params, np.int64)
    for part in range(routine.parts):
        assert not call(buffers.ctypes.data, params.ctypes.data, part, part + 1)
    firsts = range(0, lines, together)
    assert seen == [(first, min(together, lines - first)) for first in firsts]
    seen.clear()
    assert not call(buffers.ctypes.data, params.ctypes.data, 0, routine.parts)
    assert seen == [(0, lines)]


def test_many_axes() -> None:
    x = draw("c16", 3, 4, 5)
    f = tn.jit(lambda x: (np.fft.fftn(x), np.fft.irfft2(x), np.fft.fft(x, 9), np.fft.rfftn(x.real)))
    for got, want in zip(
        f(x), (np.fft.fftn(x), np.fft.irfft2(x), np.fft.fft(x, 9), np.fft.rfftn(x.real)),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(got, want, 1e-12, 1e-12)


def test_nan_and_infinity_stay_in_their_line() -> None:
    x = draw("c16", 4, 8)
    x[1, 3], x[2, 0] = np.nan, np.inf
    with np.errstate(all="ignore"):
        got, want = tn.jit(np.fft.fft)(x), np.fft.fft(x)
    np.testing.assert_array_equal(np.isfinite(got).all(axis=1), [True, False, False, True])
    np.testing.assert_array_equal(got[[0, 3]], want[[0, 3]])


def test_a_saved_plan(tmp_path: Any) -> None:
    f = tn.jit(lambda x: np.abs(np.fft.rfft(x)))
    x = draw("c16", 64).real.copy()
    want = f(x)
    f.plan(x).save(tmp_path / "spectrum.plan")
    np.testing.assert_array_equal(tn.load(tmp_path / "spectrum.plan")(x), want)


def test_a_numpy_that_has_them_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then they are the host's."""
    monkeypatch.setattr(fourier, "fourier_loops", lambda kind, dtype: None)
    x = draw("c16", 6)
    assert BACKEND.plan(tn.trace(np.fft.fft, x)).host_steps


def test_loops_are_found() -> None:
    for kind in ("fft", "ifft", "rfft_n_even", "rfft_n_odd", "irfft"):
        for dtype in ("f32", "f64"):
            assert fourier.fourier_loops(kind, dtype)
    assert fourier.fourier_loops("fft_of_another_day", "f64") is None
