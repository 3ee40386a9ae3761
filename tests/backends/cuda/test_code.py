"""Code that is kept: plan files made without a GPU, and the disk cache. What a GPU would run is run
by a simulated one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

import tenfold as tn
from tenfold.backends import registry
from tenfold.backends.cuda.array import DeviceArray
from tenfold.backends.cuda.code import INTERFACE, CudaCode, facts_data, read_code, read_facts
from tenfold.backends.cuda.run import kernels
from tenfold.backends.file import PlanFile
from tenfold.cache import plans
from tenfold.errors import PlanError
from tenfold.kernel.ir.number import Facts, prefers_less
from tests.backends.cuda.fake_cublas import FakeCublas
from tests.backends.cuda.fake_cufft import FakeCufft
from tests.backends.cuda.simulated import (
    SimulatedGpu,
    SimulatedPlace,
    printed,
    remember_printed,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 5)).astype(np.float32)
Y = RNG.standard_normal((6, 5)).astype(np.float32)


def program(x: Any, y: Any) -> Any:
    """Kernels, a product and a loop."""
    h = np.tanh(x) @ y.T

    def body(c: Any, row: Any) -> Any:
        return c * 0.5 + row, c.sum()

    last, sums = tn.scan(body, np.zeros(6, np.float32), h)
    return last, sums, h.max(axis=1)


@pytest.fixture(autouse=True)
def ir_by_ptx(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    remember_printed(monkeypatch)
    plans.clear()
    yield
    plans.clear()


def use(monkeypatch: pytest.MonkeyPatch, gpu: SimulatedGpu) -> SimulatedGpu:
    """Have this be the GPU of the machine."""
    records = {**registry._records, "cuda": SimulatedPlace(gpu).record}
    monkeypatch.setattr(registry, "_records", records)
    return gpu


def bits(got: Any, wanted: Any) -> None:
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(a).view(np.uint32), np.asarray(b).view(np.uint32))


def saved(tmp_path: Path, chip: str = "sm_90", targets: tuple[str, ...] = ()) -> Path:
    """A plan made where there is no GPU."""
    path = tmp_path / "program.plan"
    f = tn.jit(program, backend="cuda", target=chip)
    f.plan(tn.spec(X.shape, "float32"), tn.spec(Y.shape, "float32")).save(path, targets=targets)
    return path


def test_a_plan_made_without_a_gpu_runs_on_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, "sm_90", ("sm_80", "sm_100"))
    gpu = use(monkeypatch, SimulatedGpu("sm_90"))
    monkeypatch.setattr(tn.config, "cache", None)
    made = tn.stats()["kernels_compiled"]
    plan = tn.load(path, trust_code=True)
    assert any("code for sm_100 is not used: it is for sm_100" in note for note in plan.notes)
    assert plan.notes[-1] == "code for sm_90 from the file"
    assert "unchecked" in plan.explain()
    assert plan.certificate == {}
    assert tn.stats()["kernels_compiled"] == made
    wanted = tn.jit(program)(X, Y)
    bits(plan(X, Y), wanted)
    assert plan.certificate["steps"]
    assert "unchecked" not in plan.explain()
    assert gpu.launches
    bits(plan(X, Y), wanted)


@pytest.mark.parametrize(("chip", "used"), [("sm_80", "sm_80"), ("sm_89", "sm_80"),
                                            ("sm_90", "sm_90"), ("sm_120", "sm_100")])  # fmt: skip
def test_the_best_code_for_a_chip(
    chip: str, used: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, "sm_80", ("sm_90", "sm_100"))
    use(monkeypatch, SimulatedGpu(chip))
    assert tn.load(path, trust_code=True).notes[-1] == f"code for {used} from the file"


def test_a_plan_without_a_library_runs_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its products need no workspace; those of a plan made here would."""
    path = saved(tmp_path, "sm_80")
    use(monkeypatch, SimulatedGpu("sm_90", cublas=FakeCublas()))
    wanted = tn.jit(program)(X, Y)
    plan = tn.load(path, trust_code=True)
    assert plan.notes[-1] == "code for sm_80 from the file"
    bits(plan(X, Y), wanted)


@pytest.mark.parametrize(
    ("here", "note", "hosts"),
    [
        (None, "it calls cuFFT 12.0.1, here is none", 1),
        (12100, "it calls cuFFT 12.0.1, here is 12.1.0", 0),
        (12001, "code for sm_90 from the file", 0),
    ],
)
def test_a_plan_that_calls_a_library_wants_the_same_version(
    here: int | None, note: str, hosts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere it is made again."""
    monkeypatch.setattr(tn.config, "cache", None)
    x, path = X[:4, :5], tmp_path / "transform.plan"
    use(monkeypatch, SimulatedGpu("sm_90", cufft=FakeCufft()))
    tn.jit(lambda x: np.fft.rfft(x).real + 1, backend="cuda").plan(x).save(path)
    fake = FakeCufft(here) if here is not None else None
    use(monkeypatch, SimulatedGpu("sm_90", cufft=fake))
    plan = tn.load(path, trust_code=True)
    assert any(note in said for said in plan.notes)
    assert plan.explain().count("on the host: rfft") == hosts
    np.testing.assert_allclose(plan(x), np.fft.rfft(x).real + 1, rtol=1e-4, atol=1e-5)


def test_a_driver_that_is_too_old_for_the_ptx(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, "sm_100")
    gpu = use(monkeypatch, SimulatedGpu("sm_103"))
    gpu.driver = 12040
    for code in PlanFile.read(path.read_bytes()).codes():
        why = code.unusable()
        assert why is not None
        assert "for CUDA 12.4, is older than its PTX" in why


def test_what_lies_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path)
    use(monkeypatch, SimulatedGpu())
    read = PlanFile.read(path.read_bytes())
    assert read.about["backend"] == "cuda"
    (code,) = read.codes()
    assert isinstance(code, CudaCode)
    assert all(".target sm_90" in one.ptx and ".entry" in one.ptx for one in code.modules)
    again = read_code(code.pack(), code.place)  # type: ignore[arg-type]
    assert again.pack() == code.pack()
    assert {name for one in again.modules for name in one.kernels} == {
        text.name for _, text, _ in code.kernels
    }


def test_code_that_is_not_trusted_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path)
    use(monkeypatch, SimulatedGpu())
    made = tn.stats()["kernels_compiled"]
    plan = tn.load(path)
    assert plan.notes[0] == "code in the file is not trusted"
    assert plan.notes[-1] == "kernels compiled here for sm_90"
    bits(plan(X, Y), tn.jit(program)(X, Y))
    assert tn.stats()["kernels_compiled"] > made


def test_a_plan_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saved after a call, with what its check found."""
    use(monkeypatch, SimulatedGpu())
    f = tn.jit(program, backend="cuda")
    wanted = f(X, Y)
    assert f.ready(120)
    path = tmp_path / "own.plan"
    f.plan(X, Y).save(path)
    plan = tn.load(path, trust_code=True)
    assert plan.certificate == f.plan(X, Y).certificate
    bits(plan(X, Y), wanted)


def test_the_disk_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tn.config, "cache", str(tmp_path))
    use(monkeypatch, SimulatedGpu())
    f = tn.jit(program, backend="cuda")
    wanted = f(X, Y)
    assert f.ready(120)
    plans.clear()
    use(monkeypatch, SimulatedGpu())  # another process's: nothing is loaded there
    again = tn.jit(program, backend="cuda")
    assert "on disk" in tn.explain_cache(again, X, Y)
    before = tn.stats()
    bits(again(X, Y), wanted)
    after = tn.stats()
    assert after["kernels_compiled"] == before["kernels_compiled"]
    assert after["cache_misses"] == before["cache_misses"]
    assert after["plans"] == before["plans"]  # it lies there, too
    certificate = again.certificate(X, Y)
    assert certificate is not None
    assert certificate.complete


def test_a_plan_on_disk_with_other_lines_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors and explanations name the lines of today's source."""
    monkeypatch.setattr(tn.config, "cache", str(tmp_path))
    for start, made in ((0, 1), (0, 0), (7, 1), (7, 1)):
        use(monkeypatch, SimulatedGpu())
        plans.clear()
        text = "\n" * start + "def f(x):\n    return np.exp(x) * x"
        names: dict[str, Any] = {"np": np}
        exec(compile(text, "moved.py", "exec"), names)
        before = tn.stats()["plans"]
        f = tn.jit(names["f"], backend="cuda")
        f(X)
        assert tn.stats()["plans"] - before == made
        assert f"moved.py:{start + 2}" in f.plan(X).explain()
        assert f.ready(60)


def test_a_kernel_that_is_shared_is_kept_with_its_own_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program whose kernels were compiled with another's does not keep the other's."""
    use(monkeypatch, SimulatedGpu())
    big = tn.jit(lambda x: (np.exp(x).sum(axis=0), np.sort(x, axis=0) * 2), backend="cuda")
    big.plan(X)
    path = tmp_path / "small.plan"
    small = tn.jit(lambda x: np.exp(x).sum(axis=0), backend="cuda").plan(X)
    small.save(path)
    (code,) = PlanFile.read(path.read_bytes()).codes()
    assert isinstance(code, CudaCode)
    assert sum(len(one.kernels) for one in code.modules) == len(small.program.code)


def malformed(code: CudaCode, change: Any) -> bytes:
    data = msgpack.unpackb(code.pack())
    change(data)
    return msgpack.packb(data)  # type: ignore[no-any-return]


CHANGES: dict[str, Any] = {
    "a kernel of no module": lambda d: d["kernels"][0].__setitem__(0, 99),
    "a call of no kernel": lambda d: d["codes"].append(-1),
    "no functions": lambda d: d["kernels"][0].__setitem__(1, []),
    "an operation that is none": lambda d: d["kernels"][0][4][1].append(["__import__", 0, 0]),
    "a number of itself": lambda d: d["kernels"][0][4][1].append(["add", 10**6, 0]),
    "text for a number": lambda d: d["kernels"][0][4][1].append("1); print(1"),
    "glue of no module": lambda d: d["glue"].append(["k", -1]),
    "no target": lambda d: d.pop("target"),
    "types that are none": lambda d: d.__setitem__("parameters", ["f99[2]"]),
    "a routine of no module": lambda d: d["routines"].append(["k", "d", 77]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_malformed_code(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path)
    use(monkeypatch, SimulatedGpu())
    (code,) = PlanFile.read(path.read_bytes()).codes()
    assert isinstance(code, CudaCode)
    assert code.place is not None
    with pytest.raises(PlanError):
        read_code(malformed(code, CHANGES[change]), code.place)


def test_code_of_another_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path)
    use(monkeypatch, SimulatedGpu())
    (code,) = PlanFile.read(path.read_bytes()).codes()
    other = tn.jit(lambda x: x + 1, backend="cuda").plan(X).plan
    with pytest.raises(PlanError):
        code.restore(lambda: other)
    assert isinstance(code, CudaCode)
    assert code.place is not None
    newer = read_code(
        malformed(code, lambda d: d.__setitem__("interface", INTERFACE + 1)), code.place
    )
    assert "launched in another way" in str(newer.unusable())


def test_facts_as_data() -> None:
    facts = Facts([40, 7])
    n, m = facts.sizes
    _ = n % 8 == 0, prefers_less(n * m, 1000), (n + m).bit_length() <= 6, n / 2 < 100.5
    again = read_facts(_unpacked(facts_data(facts)))
    for sizes in ([40, 7], [48, 7], [41, 7], [400, 7], [48, 100], [16, 1]):
        assert again.hold(sizes) == facts.hold(sizes)
        assert again.admit(sizes) == facts.admit(sizes)
        wanted = (n * m).at
        assert again.at(sizes, (wanted,)) == facts.at(sizes, (wanted,))


def _unpacked(data: Any) -> Any:
    return msgpack.unpackb(msgpack.packb(data), use_list=False)


def test_loops_that_are_one_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands between kernels, and a loop of small rounds, is in the file, too."""

    def grows(x: Any) -> Any:
        def body(state: Any) -> Any:
            n, c = state
            return n + 1, c * 0.5 + np.tanh(x)

        _, c = tn.while_loop(lambda state: state[0] < 40, body, (0, x))
        return c, tn.scan(lambda c, row: (c * 0.9 + row, c.max()), x[0], np.tile(x, (40, 1)))

    path = tmp_path / "loops.plan"
    tn.jit(grows, backend="cuda", target="sm_90").plan(tn.spec(X.shape, "float32")).save(path)
    use(monkeypatch, SimulatedGpu())
    (code,) = PlanFile.read(path.read_bytes()).codes()
    assert isinstance(code, CudaCode)
    assert code.glue
    plan = tn.load(path, trust_code=True)
    made: list[str] = []
    real = kernels.shared_module
    monkeypatch.setattr(
        kernels, "shared_module", lambda text, target: (made.append(text), real(text, target))[1]
    )
    wanted = tn.jit(grows)(X)
    monkeypatch.setenv("TENFOLD_VERIFY", "off")  # a check runs single steps, in other graphs
    for _ in range(2):
        c, (last, most) = plan(X)
        bits([c, last, most], [wanted[0], *wanted[1]])
    assert made == []  # nothing is compiled


def test_a_loaded_plan_takes_arrays_on_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path)
    use(monkeypatch, SimulatedGpu())
    plan, wanted = tn.load(path, trust_code=True), tn.jit(program)(X, Y)
    there = tn.device_put(X, "cuda")
    for _ in range(3):  # checked, by the slow path, by the entry
        got = plan(there, Y)
        assert all(isinstance(one, DeviceArray) for one in got)
        bits(got, wanted)
    assert all(type(one) is np.ndarray for one in plan(X, Y))


def test_code_that_is_wrong_is_found_by_the_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sum.plan"
    f = tn.jit(lambda x, y: x * y, backend="cuda", target="sm_90")
    f.plan(tn.spec(X.shape, "float32"), tn.spec(Y.shape, "float32")).save(path)
    use(monkeypatch, SimulatedGpu())
    (code,) = PlanFile.read(path.read_bytes()).codes()
    assert isinstance(code, CudaCode)
    for one in code.modules:
        monkeypatch.setitem(printed, one.ptx, printed[one.ptx].replace(" fmul ", " fadd "))
    plan = tn.load(path, trust_code=True)
    with pytest.warns(tn.ParityWarning, match="disagrees with the reference"):
        got = plan(X, Y)
    np.testing.assert_array_equal(got, X * Y)
    assert "refuted" in plan.explain()


def test_fast_maths_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "fast.plan"
    f = tn.jit(lambda x: np.exp(x), backend="cuda", target="sm_90", maths="fast")
    f.plan(tn.spec(X.shape, "float32")).save(path)
    gpu = use(monkeypatch, SimulatedGpu("sm_90+fast"))
    fast = SimulatedPlace(gpu, "fast").record
    monkeypatch.setattr(registry, "_records", {**registry._records, fast.name: fast})
    read = PlanFile.read(path.read_bytes())
    assert read.about["backend"] == "cuda+fast"
    (code,) = read.codes()
    assert isinstance(code, CudaCode)
    assert any("ex2.approx" in one.ptx for one in code.modules)
    assert code.unusable() is None
    plan = tn.load(path, trust_code=True)
    assert "chip's own instructions" in plan.explain()
    got = plan(X)
    np.testing.assert_allclose(got, np.exp(X), rtol=4e-7)
    assert plan.certificate["steps"]
    exact = read_code(code.pack(), SimulatedPlace(gpu))
    assert "computed in the fast way" in str(exact.unusable())
