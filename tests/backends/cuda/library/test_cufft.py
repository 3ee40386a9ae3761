"""Fourier transforms by cuFFT: what it is asked for, with a library that transforms by NumPy in
place of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cuda.assemble import ModuleCode
from tenfold.backends.cuda.library.cufft import COMPLEX, Transform, load_cufft
from tenfold.backends.cuda.library.fourier import fourier_routine
from tenfold.backends.cuda.library.routine import RoutineLaunch
from tenfold.backends.cuda.recording import LibraryNode
from tenfold.backends.cuda.target import named
from tenfold.backends.llvm.text import join
from tenfold.errors import DeviceProblem
from tenfold.graph import Graph
from tenfold.parity.certificate import Certificate
from tenfold.parity.check import check
from tenfold.reference import evaluate
from tenfold.types import TensorType
from tests.backends.cuda.against import graph_of, ordinary
from tests.backends.cuda.fake_cufft import FakeCufft
from tests.backends.cuda.simulated import SimulatedGpu, remember_printed, simulated

Array = np.ndarray[Any, Any]
LINES = [(8,), (1,), (5, 7), (1, 1), (1, 5, 6), (4, 3, 1)]
SHAPES = [*LINES, (3, 34, 35), (3, 9, 7), (2, 0, 3), (9, 33, 4), (9, 34, 12)]
NORMS = ("backward", "ortho", "forward")


def cases(name: str, dtype: str, shape: tuple[int, ...]) -> list[tuple[Graph, Array]]:
    """A transform along each axis, the norms by turns."""
    found, x = [], ordinary(dtype, shape)
    for axis, extent in enumerate(shape):
        if not extent:
            continue
        given: dict[str, Any] = {"axis": axis, "norm": NORMS[axis % 3]}
        if name == "irfft":
            odd = given | {"n": 2 * extent - 1}
            found.append((graph_of(name, [x], **odd), x))
            given["n"] = max(1, 2 * extent - 2)
        if name == "fft":
            given["inverse"] = False
            found.append((graph_of(name, [x], **given | {"inverse": True}), x))
        found.append((graph_of(name, [x], **given), x))
    return found


def close(made: Array, expected: Any, dtype: str) -> None:
    expected = np.asarray(expected)
    assert made.dtype == expected.dtype
    assert made.shape == expected.shape
    near = 1e-5 if dtype in ("f32", "c64") else 1e-13
    size = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(made, expected, rtol=0, atol=near * size)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(n, d) for n in ("fft", "irfft") for d in ("c64", "c128")]
    + [("rfft", "f32"), ("rfft", "f64")],
)
@pytest.mark.parametrize("shape", SHAPES)
def test_transforms_give_what_numpy_gives(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    backend = simulated(SimulatedGpu(cufft=FakeCufft()))
    for graph, x in cases(name, dtype, shape):
        program = backend.compile(graph)
        assert not program.plan.host_steps
        for _ in range(2):  # inputs are not written over
            (made,) = program([x])
            close(made, evaluate(graph, [x])[0], dtype)


@pytest.mark.parametrize(("name", "dtype"), [("rfft", "f32"), ("irfft", "c64"), ("fft", "c64")])
@pytest.mark.parametrize(("shape", "axis"), [((3, 5), 1), ((5, 3), 0), ((3, 4, 5), 1)])
def test_arrays_at_odd_places(name: str, dtype: str, shape: tuple[int, ...], axis: int) -> None:
    """They begin at a multiple of their elements and no more."""
    gpu, x = SimulatedGpu(cufft=FakeCufft()), ordinary(dtype, shape)
    given: dict[str, Any] = {"axis": axis, "norm": "ortho"}
    given |= {"n": 2 * shape[axis] - 1} if name == "irfft" else {}
    given |= {"inverse": True} if name == "fft" else {}
    type = TensorType(x.dtype, x.shape)
    routine = fourier_routine(name, type, given, target=gpu.target, aligned=False)
    assert routine is not None
    (expected,) = evaluate(graph_of(name, [x], **given), [x])
    shift = 4 if name == "rfft" else 8
    made = np.empty(expected.shape, expected.dtype)
    placed = gpu.alloc(x.nbytes + 16) + shift
    gpu.upload(placed, x, 0)
    own = 4 if name == "irfft" else 8
    places = [placed, gpu.alloc(made.nbytes + 16) + own, gpu.alloc(routine.scratch)]
    (module,) = gpu.load([ModuleCode(gpu.target, join([routine.text(gpu.target)]))])
    for one in routine.launches:
        if isinstance(one, RoutineLaunch):
            words = [places[n].to_bytes(8, "little") for n in one.arrays]
            words += [value.to_bytes(size, "little", signed=True) for value, size in one.words]
            gpu.launch(module.function(one.function), one.blocks, one.threads, words, 0)
        else:
            assert one.captured
            room = gpu.alloc(one.prepare(gpu, False))  # type: ignore[arg-type]
            one.call(gpu, 0, [*places, room])  # type: ignore[arg-type]
    gpu.download(made, places[1], 0)
    close(made, expected, dtype)


def test_what_lies_as_the_library_has_it_is_not_copied() -> None:
    """A scale takes a function of its own; so does what comes before and behind the axis, if it is
    much."""
    counts = {}
    for shape, axis, norm in (
        ((6, 8), 1, "backward"),
        ((6, 8), 0, "backward"),
        ((6, 8), 1, "ortho"),
        ((6, 8, 4), 1, "backward"),
        ((16, 8, 4), 1, "ortho"),
    ):
        gpu = SimulatedGpu(cufft=FakeCufft())
        x = ordinary("c128", shape)
        graph = graph_of("fft", [x], axis=axis, norm=norm, inverse=False)
        simulated(gpu).compile(graph)([x])
        counts[shape, axis, norm] = len(gpu.launches)
    assert list(counts.values()) == [0, 0, 1, 0, 2]


def test_a_plan_of_the_library_is_made_once() -> None:
    fake = FakeCufft()
    program = simulated(SimulatedGpu(cufft=fake)).compile(
        tn.trace(lambda x: np.fft.fft(np.fft.fft(x) * 2), np.ones((4, 5), np.complex128))
    )
    for _ in range(3):
        program([ordinary("c128", (4, 5))])
    assert fake.calls.count("cufftMakePlanMany64") == 1
    assert fake.calls.count("cufftExecZ2Z") == 6


def test_calls_that_work_in_the_same_memory_wait_for_each_other() -> None:
    """An odd number of points takes such memory here, an even one does not."""
    for points, waits in ((5, True), (8, False)):
        x = ordinary("c128", (3, points))
        graph = tn.trace(lambda x, y: (np.fft.fft(x), np.fft.fft(y)), x, x)
        program = simulated(SimulatedGpu(cufft=FakeCufft())).compile(graph)
        with program.room() as room:
            (recording,) = program.replay(room).recordings
        first, second = (n for n in recording.nodes if isinstance(n, LibraryNode))
        assert (recording.nodes.index(first) in second.after) == waits
        assert len(first.places) == 2 + waits


def test_transforms_of_many_axes_and_in_loops() -> None:
    def program(x: Any) -> Any:
        def body(c: Any, row: Any) -> Any:
            c = np.fft.ifft(np.fft.fft(c) * 1.5)
            return c, np.fft.rfft(row)

        last, rows = tn.scan(body, np.ones(5, np.complex128), x[0])
        return np.fft.fftn(x), np.fft.irfftn(np.fft.rfftn(x), x.shape), last, rows

    x = ordinary("f64", (3, 40, 6))
    graph = tn.trace(program, x)
    compiled = simulated(SimulatedGpu(cufft=FakeCufft())).compile(graph)
    assert not compiled.plan.host_steps
    for made, expected in zip(compiled([x]), evaluate(graph, [x]), strict=True):
        close(made, expected, "f64")


def test_a_program_of_transforms_is_certified_and_says_by_whom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    remember_printed(monkeypatch)
    backend = simulated(SimulatedGpu(cufft=FakeCufft()))
    x = ordinary("f32", (4, 30))
    graph = tn.trace(lambda x: np.fft.irfft(np.fft.rfft(x) * 2), x)
    program = backend.compile(graph)
    verdict = check(program, graph, [x]).verdict
    assert isinstance(verdict, Certificate), verdict
    assert ("cuFFT", "12.0.1") in verdict.versions
    assert "rfft of f32[4,30]: by cuFFT 12.0.1, whose bits are its own" in program.plan.explain()
    code = backend.read_code(backend.code_of(program, True).pack())
    (made,) = code.restore(lambda: program.plan)([x])
    close(made, evaluate(graph, [x])[0], "f32")


def test_code_that_calls_another_version_is_not_used() -> None:
    x = ordinary("c64", (4, 6))
    graph = graph_of("fft", [x], axis=1, norm="backward", inverse=False)
    older, newer, none = (
        simulated(SimulatedGpu(cufft=fake)) for fake in (FakeCufft(), FakeCufft(12103), None)
    )
    raw = older.code_of(older.compile(graph), True).pack()
    assert newer.read_code(raw).unusable() == "it calls cuFFT 12.0.1, here is 12.1.3"
    assert none.read_code(raw).unusable() == "it calls cuFFT 12.0.1, here is none"
    assert named("sm_90").digest != named("sm_90", cufft="12.0.1").digest


def test_a_refusal_says_what_and_by_whom() -> None:
    fake = FakeCufft(refuses=True)
    gpu = SimulatedGpu(cufft=fake)
    with pytest.raises(DeviceProblem, match=r"cuFFT 12\.0\.1: it does not do so many points"):
        gpu.transformer().prepare(Transform(COMPLEX, "f32", 7, 1, (1, 7), (1, 7)))
    assert fake.calls[-1] == "cufftDestroy"


def test_a_file_that_is_no_library(tmp_path: Any) -> None:
    path = tmp_path / "libcufft.so.12"
    path.write_bytes(b"no library")
    with pytest.raises(DeviceProblem, match="no cuFFT that can be loaded"):
        load_cufft(str(path))
