"""What can only be seen on a GPU: code that a driver takes, memory that runs out, arrays of other
libraries and their streams."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cuda import assemble
from tenfold.backends.cuda.array import DeviceArray
from tenfold.backends.cuda.code import CudaCode
from tenfold.backends.cuda.driver.device import gpu
from tenfold.backends.file import PlanFile
from tenfold.backends.registry import backend_record
from tenfold.cache import plans
from tenfold.errors import DeviceMemoryProblem, IndexProblem

_MISSING = backend_record("cuda").missing()
pytestmark = pytest.mark.skipif(_MISSING is not None, reason=f"no GPU: {_MISSING}")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 70)).astype(np.float32)
Y = RNG.standard_normal((300, 70)).astype(np.float32)


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tn.config, "cache", None)
    plans.clear()
    yield
    plans.clear()


def program(x: Any, y: Any) -> Any:
    def body(c: Any, row: Any) -> Any:
        return c * 0.5 + row, c.sum()

    last, sums = tn.scan(body, np.zeros(70, np.float32), np.tanh(x) * y)
    return last, sums, np.exp(x).sum(axis=0), (x @ y.T).max(axis=1), np.sort(y, axis=0)


def bits(got: Any, wanted: Any) -> None:
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(a).view(np.uint32), np.asarray(b).view(np.uint32))


@pytest.mark.parametrize("ptxas", [True, False])
def test_the_cpus_bits(ptxas: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By ptxas, if it is there, and by the driver's own assembler."""
    if not ptxas:
        monkeypatch.setattr(assemble, "assembler", lambda: None)
    f = tn.jit(program, backend="cuda")
    wanted = tn.jit(program)(X, Y)
    for _ in range(2):
        bits(f(X, Y), wanted)
    assert f.ready(120)
    certificate = f.certificate(X, Y)
    assert certificate is not None
    assert certificate.complete


@pytest.mark.parametrize("machine_code", [True, False])
def test_a_plan_made_for_this_chip(
    machine_code: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assemble.shared_module.cache_clear()  # which may have been assembled
    if not machine_code:
        monkeypatch.setattr(assemble, "assembler", lambda: None)
    chip = backend_record("cuda").target().name
    path = tmp_path / "program.plan"
    specs = (tn.spec(X.shape, "float32"), tn.spec(Y.shape, "float32"))
    f = tn.jit(program, backend="cuda", target=chip)
    f.plan(*specs).save(path, targets=tuple({"sm_80", "sm_90", "sm_100"} - {chip}))
    for code in PlanFile.read(path.read_bytes()).codes():
        assert isinstance(code, CudaCode)
        assert machine_code or not any(one.cubins for one in code.modules)
    made = tn.stats()["kernels_compiled"]
    plan = tn.load(path, trust_code=True)
    assert plan.notes[-1] == f"code for {chip} from the file"
    assert tn.stats()["kernels_compiled"] == made
    assert "unchecked" in plan.explain()
    wanted = tn.jit(program)(X, Y)
    bits(plan(X, Y), wanted)
    assert plan.certificate
    bits(plan(X, Y), wanted)


def test_ptx_of_an_older_chip(tmp_path: Path) -> None:
    path = tmp_path / "old.plan"
    f = tn.jit(program, backend="cuda", target="sm_80")
    f.plan(tn.spec(X.shape, "float32"), tn.spec(Y.shape, "float32")).save(path)
    plan = tn.load(path, trust_code=True)
    assert plan.notes[-1] == "code for sm_80 from the file"
    bits(plan(X, Y), tn.jit(program)(X, Y))


def test_another_process_finds_it_on_disk(tmp_path: Path) -> None:
    code = (
        "import numpy as np, tenfold as tn\n"
        "f = tn.jit(lambda x: np.tanh(x).sum(axis=0), backend='cuda')\n"
        "x = np.linspace(-2, 2, 6000, dtype=np.float32).reshape(60, 100)\n"
        "y = f(x); f.ready(60)\n"
        "print(tn.stats()['kernels_compiled'], y.tobytes().hex())\n"
    )
    environment = {**os.environ, "TENFOLD_CACHE": str(tmp_path)}
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        for _ in range(2)
    ]
    assert said[0][0] != "0"
    assert said[1][0] == "0"
    assert said[0][1] == said[1][1]


def test_arrays_that_stay() -> None:
    f = tn.jit(lambda x, y: x * y + 1, backend="cuda", keep=True)
    there = tn.device_put(X, "cuda")
    for _ in range(3):
        got = f(there, Y)
        assert isinstance(got, DeviceArray)
        bits([got], [tn.jit(lambda x, y: x * y + 1)(X, Y)])
    assert f.ready(60)
    before = gpu(0).memory()[0]
    for _ in range(200):
        got = f(got, Y)
    assert before - gpu(0).memory()[0] < 64 << 20  # what nobody has is freed


def test_memory_that_runs_out() -> None:
    f = tn.jit(lambda x: x + 1, backend="cuda", verify="off")
    small, large = tn.device_put(X, "cuda"), np.ones((1 << 16, 1 << 10), np.float32)
    np.testing.assert_array_equal(f(X), X + 1)
    tn.release_memory()
    free, _ = gpu(0).memory()
    held = DeviceArray(gpu(0), (free - (64 << 20),), np.dtype(np.uint8))
    for _ in range(2):
        with pytest.raises(DeviceMemoryProblem, match=r"f32\[65536,1024\] 256.0 MiB \(input\)"):
            f(large)
    with pytest.raises(DeviceMemoryProblem, match="an array"):
        tn.device_put(large, "cuda")
    np.testing.assert_array_equal(small.numpy(), X)  # the process lives on
    del held
    np.testing.assert_array_equal(f(large), large + 1)


def test_a_bad_index() -> None:
    f = tn.jit(lambda x, i: x[i], backend="cuda")
    for _ in range(2):
        with pytest.raises(IndexProblem):
            f(X, np.array([0, 300]))
        np.testing.assert_array_equal(f(X, np.array([1, 2])), X[[1, 2]])


def test_a_child_of_this_process() -> None:
    f = tn.jit(lambda x: x + 1, backend="cuda")
    f(X)
    child = os.fork()
    if not child:
        try:
            f(X)
        except tn.TenfoldError as error:
            os._exit(0 if "spawn" in str(error) else 2)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    f(X)


def test_calls_are_not_waited_for_and_keep_their_order() -> None:
    """Many calls in a row, whose arrays come and go, among calls with NumPy's."""
    f = tn.jit(lambda x, y: np.tanh(x) * y - x, backend="cuda")
    g = tn.jit(lambda x, y: np.tanh(x) * y - x)
    f(X, Y)
    assert f.ready(60)
    f(X, Y)
    x, y = (tn.device_put(a, "cuda") for a in (X, Y))
    f(x, y)
    answered = f.plan(X, Y).program.answered
    wanted = X
    for n in range(300):
        x, wanted = f(x, y), g(wanted, Y)
        if n % 50 == 0:
            bits([f(X, Y)], [g(X, Y)])
        if n % 100 == 99:
            assert tn.release_memory()
    bits([x.numpy()], [wanted])
    assert f.plan(X, Y).program.answered == answered + 306


def test_torch() -> None:
    torch: Any = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    f = tn.jit(lambda x, y: x * y + 1, backend="cuda")
    wanted = f(X, Y)
    assert f.ready(60)
    f(X, Y)
    x = torch.from_numpy(X).cuda()
    got = f(x, torch.from_numpy(Y).cuda())
    assert isinstance(got, torch.Tensor)
    assert got.is_cuda
    bits([got.cpu().numpy()], [wanted])
    bits([f(x.T.contiguous().T, Y).cpu().numpy()], [wanted])  # not packed
    wide = torch.cat([torch.zeros(1).cuda(), x.reshape(-1)])
    bits([f(wide[1:].reshape(X.shape), Y).cpu().numpy()], [wanted])  # at an odd place
    kept = tn.device_put(X, "cuda").to_torch()
    bits([kept.cpu().numpy()], [X])
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):  # what a stream has not come to yet is waited for
        torch.cuda._sleep(200_000_000)
        late = x * 2
        got = f(late, Y)
    bits([got.cpu().numpy()], [tn.jit(lambda x, y: x * y + 1)(X * 2, Y)])


def test_who_writes_over_what_a_call_reads() -> None:
    torch: Any = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    f = tn.jit(lambda x: np.sort(x, axis=0) + 1, backend="cuda")
    wanted = tn.jit(lambda x: np.sort(x, axis=0) + 1)(X)
    f(X)
    assert f.ready(60)
    for _ in range(3):
        f(tn.device_put(X, "cuda"))
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(20):
            x = tn.device_put(X, "cuda")
            first = f(x)
            other = x.to_torch()
            second = f(x)  # which waits: others have it
            other.zero_()
            doubled = first.to_torch() * 2  # torch's stream follows the call
            foreign = torch.from_numpy(X).cuda()
            third = f(foreign)
            foreign.zero_()
            bits([first.numpy(), second.numpy(), third.cpu()], [wanted] * 3)
            bits([doubled.cpu()], [wanted * 2])


def test_cupy() -> None:
    cupy: Any = pytest.importorskip("cupy")
    f = tn.jit(lambda x, y: x * y + 1, backend="cuda")
    wanted = f(X, Y)
    assert f.ready(60)
    f(X, Y)
    got = f(cupy.asarray(X), cupy.asarray(Y))
    assert isinstance(got, cupy.ndarray)
    bits([got.get()], [wanted])
    bits([f(cupy.asfortranarray(cupy.asarray(X)), Y).get()], [wanted])
    kept = tn.device_put(X, "cuda")
    bits([cupy.asarray(kept).get(), kept.to_cupy().get()], [X, X])


def test_jax() -> None:
    jax: Any = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("this JAX has no CUDA")
    f = tn.jit(lambda x, y: x * y + 1, backend="cuda")
    wanted = f(X, Y)
    assert f.ready(60)
    f(X, Y)
    got = f(jax.numpy.asarray(X), jax.numpy.asarray(Y))
    assert isinstance(got, jax.Array)
    bits([np.asarray(got)], [wanted])


def test_replays_in_streams_and_captures_of_torch() -> None:
    torch: Any = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this torch has no CUDA")

    def f(x: Any, y: Any) -> Any:
        return np.tanh(x) * y, np.sort(y, axis=0), x @ y.T

    plan = tn.jit(f, backend="cuda").plan(X, Y)
    x, y = torch.from_numpy(X).cuda(), torch.from_numpy(Y).cuda()
    bound = plan.bind(x, y)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):  # it follows what the stream has not come to yet
        torch.cuda._sleep(100_000_000)
        x.mul_(2)
        bound.replay(stream)
        doubled = torch.from_dlpack(bound.outputs[0]) + 0
    bound.wait()
    bits([doubled.cpu().numpy()], [tn.jit(f)(X * 2, Y)[0]])
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.mul_(2)
        bound.replay(torch.cuda.current_stream())
    for times in (4, 8):
        graph.replay()
        torch.cuda.synchronize()
        wanted = tn.jit(f)(X * times, Y)
        bits([one.numpy() for one in bound.outputs[:2]], wanted[:2])
        np.testing.assert_allclose(bound.outputs[2].numpy(), wanted[2], rtol=1e-3, atol=1e-3)
