"""A backend is one record: a second one, registered by a test, is planned for, checked, cached,
kept in files and called like the first."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import plant

import tenfold as tn
from tenfold.backends import registry
from tenfold.backends.file import PlanFile
from tenfold.cache import plans
from tenfold.errors import PlanError, Unsupported
from tests.backends.interpreter import INTERPRETER, InterpretedProgram

ROOT = Path(tn.__file__).parent
RNG = np.random.default_rng(0)
X, W = RNG.standard_normal((2, 5, 4))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The interpreter is known, and the CPU can't be asked for."""
    missing = replace(registry.backend_record("cpu"), missing=lambda: "the test says so")
    gone = {
        name: replace(registry.backend_record(name), missing=lambda: "nor is this")
        for name in ("cuda", "webgpu")
    }
    records = {"interpreter": INTERPRETER, "cpu": missing, **gone}
    monkeypatch.setattr(registry, "_records", records)
    plans.clear()
    yield
    plans.clear()


def energy(x: Any, w: Any) -> Any:
    """Kernels, host steps (the interpreter has no tanh), a reduction and a loop."""
    h = np.tanh(x * w) + 2.5

    def body(c: Any, row: Any) -> Any:
        return c * 0.5 + row, c.sum()

    last, sums = tn.scan(body, np.zeros(4), h)
    return last, sums, h.sum(axis=0)


def plain(x: Any, w: Any) -> Any:
    """The same in NumPy."""
    h, c, sums = np.tanh(x * w) + 2.5, np.zeros(4), []
    for row in h:
        sums.append(c.sum())
        c = c * 0.5 + row
    return c, np.array(sums), h.sum(axis=0)


def agree(got: Any, wanted: Any) -> None:
    for mine, one in zip(got, wanted, strict=True):
        np.testing.assert_allclose(mine, one, rtol=1e-12)


def test_a_program_runs_on_it_and_is_certified() -> None:
    f = tn.jit(energy, backend="interpreter")
    for _ in range(3):
        agree(f(X, W), plain(X, W))
    assert f.ready(60)
    program = f.plan(X, W).program
    assert isinstance(program, InterpretedProgram)
    assert {step.op for step in program.plan.host_steps} == {"tanh"}
    assert "the interpreter has no tanh" in f.plan(X, W).explain()
    certificate = f.certificate(X, W)
    assert certificate is not None
    assert certificate.complete
    assert "interpreter" in certificate.target
    assert dict(certificate.versions)["interpreter"] == "1"
    assert "llvmlite" not in dict(certificate.versions)


def test_calls_are_answered_through_its_own_door() -> None:
    f = tn.jit(lambda x: x * 2.5, backend="interpreter")
    f(X)
    assert f.ready(60)
    program = f.plan(X).program
    before = program.answered
    for _ in range(3):
        np.testing.assert_array_equal(f(X), X * 2.5)
    assert program.answered == before + 3
    np.testing.assert_array_equal(f(X[::2]), X[::2] * 2.5)  # another signature


def test_parity_and_bisect(tmp_path: Path) -> None:
    f = tn.jit(energy, backend="interpreter")
    table = tn.parity(f, X, W)
    assert table.agrees
    assert table.backends[0][0] == "interpreter"
    assert str(tn.parity(energy, X, W, backends=["interpreter"])) == str(table)
    assert str(tn.bisect(f, X, W, script=None)).startswith("the plan agrees")


def test_a_fault_is_found_and_shown_on_that_backend(tmp_path: Path) -> None:
    script = tmp_path / "divergence.py"
    with plant("instruction", "mul>add"):
        found = tn.bisect(
            tn.jit(lambda x, w: np.sqrt(abs(x * w)), backend="interpreter"), X, W, script=script
        )
        assert found.node is not None
        assert found.node.op == "mul"
        with pytest.warns(tn.ParityWarning):
            got = tn.jit(lambda x, w: x * w, backend="interpreter")(X, W)
    np.testing.assert_array_equal(got, X * W)  # the reference answers
    assert "backend='interpreter'" in script.read_text()


def test_its_plans_are_found_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tn.config, "cache", str(tmp_path))
    f = tn.jit(energy, backend="interpreter")
    wanted = f(X, W)
    assert f.ready(60)
    plans.clear()
    missed = tn.stats()["cache_misses"]
    again = tn.jit(energy, backend="interpreter")
    assert "on disk" in tn.explain_cache(again, X, W)
    for got, one in zip(again(X, W), wanted, strict=True):
        np.testing.assert_array_equal(got, one)
    assert tn.stats()["cache_misses"] == missed
    certificate = again.certificate(X, W)
    assert certificate is not None
    assert certificate.complete


def test_the_backend_is_part_of_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tn.config, "cache", str(tmp_path))
    tn.jit(energy, backend="interpreter")(X, W)
    registry.register(replace(INTERPRETER, name="other"))
    said = tn.explain_cache(tn.jit(energy, backend="other"), X, W)
    assert "backend: interpreter before, other now" in said


def test_a_plan_file(tmp_path: Path) -> None:
    path = tmp_path / "energy.plan"
    tn.jit(energy, backend="interpreter").plan(X, W).save(path)
    read = PlanFile.read(path.read_bytes())
    assert read.about["backend"] == "interpreter"
    assert len(read.codes()) == 1
    for trusted, note in ((True, "from the file"), (False, "compiled here")):
        plan = tn.load(path, trust_code=trusted)
        assert note in plan.notes[-1]
        assert isinstance(plan.program, InterpretedProgram)
        agree(plan(X, W), plain(X, W))
    registry._records.pop("interpreter")
    with pytest.raises(PlanError, match="no backend 'interpreter'"):
        tn.load(path, trust_code=True)


def test_what_there_is() -> None:
    found = tn.backends()
    assert found["cpu"] == {"missing": "the test says so"}
    assert found["interpreter"]["entry"] == "Python"


def test_a_backend_that_is_not_there() -> None:
    with pytest.raises(Unsupported, match="no backend 'abacus'") as error:
        tn.jit(energy, backend="abacus")
    listed = (
        "there are: cpu (not here: the test says so), cuda (not here: nor is this), "
        "webgpu (not here: nor is this), interpreter"
    )
    assert error.value.fix == listed
    with pytest.raises(Unsupported, match="'cpu' can't be used here: the test says so"):
        tn.jit(energy, backend="cpu")


def test_the_default_is_the_cpu() -> None:
    code = (
        "import numpy as np, tenfold as tn\n"
        "f = tn.jit(lambda x: x + 1)\n"
        "assert f.plan(np.ones(3)).program.backend.name == 'cpu'\n"
        "g = tn.jit(lambda x: x + 1, backend='cpu')\n"
        "assert g.plan(np.ones(3)).program is f.plan(np.ones(3)).program\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nobody_outside_names_a_backend() -> None:
    """No import, and no text either, but the line of the registry that lists them."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        where = path.relative_to(ROOT).as_posix()
        if where.startswith(("backends/cpu/", "backends/cuda/", "backends/llvm/")):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                names = [node.value] if node.value.startswith("tenfold.backends.") else []
            private = (
                "tenfold.backends.cpu",
                "tenfold.backends.cuda",
                "tenfold.backends.llvm",
                "llvmlite",
            )
            found += [(where, name) for name in names if name.startswith(private)]
    assert found == [
        ("backends/registry.py", "tenfold.backends.cpu.backend"),
        ("backends/registry.py", "tenfold.backends.cuda.backend"),
    ]


def test_a_backend_that_is_named_is_looked_at_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened() -> str | None:
        raise AssertionError("another backend was looked at")

    records = registry._records
    others = {n: replace(records[n], missing=opened) for n in ("cpu", "webgpu")}
    monkeypatch.setattr(registry, "_records", {**records, **others})
    assert list(tn.backends("interpreter")) == ["interpreter"]
    monkeypatch.setattr(registry, "_records", records)
    with pytest.raises(Unsupported, match="there is no backend 'abacus'"):
        tn.backends("abacus")
