"""Code that is kept: WGSL in plan files and in the disk cache."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.file import PlanFile
from tenfold.backends.registry import backend_record
from tenfold.backends.webgpu.backend import BACKEND, Place
from tenfold.backends.webgpu.code import WebGPUCode, read_code
from tenfold.cache import plans
from tenfold.errors import PlanError, Unsupported
from tests.backends.webgpu.here import needs_adapter

pytestmark = needs_adapter

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 5)).astype(np.float32)
Y = RNG.standard_normal((6, 5)).astype(np.float32)
SPECS = tn.spec(X.shape, "float32"), tn.spec(Y.shape, "float32")


def program(x: Any, y: Any) -> Any:
    """Kernels, a step of the host and a loop."""
    h = np.sort(np.tanh(x) * y, axis=0)

    def body(c: Any, row: Any) -> Any:
        return c * 0.5 + row, c.sum()

    last, sums = tn.scan(body, np.zeros(5, np.float32), h)
    return last, sums, h.max(axis=1)


def bits(got: Any, wanted: Any) -> None:
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(a).view(np.uint32), np.asarray(b).view(np.uint32))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "program.plan"
    tn.jit(program, backend="webgpu").plan(*SPECS).save(path)
    plans.clear()
    return path


def test_a_plan_comes_back_with_its_shaders(saved: Path) -> None:
    (code,) = PlanFile.read(saved.read_bytes()).codes()
    assert isinstance(code, WebGPUCode)
    assert all("@compute" in shader.text for shader, _ in code.kernels)
    plan = tn.load(saved, trust_code=True)
    assert plan.notes[-1] == f"code for {BACKEND.target().name} from the file"
    wanted = tn.jit(program, backend="webgpu")(X, Y)
    for _ in range(2):
        bits(plan(X, Y), wanted)
    assert plan.certificate


def test_what_is_not_trusted_is_made_again(saved: Path) -> None:
    plan = tn.load(saved)
    assert any("kernels compiled here" in note for note in plan.notes)
    bits(plan(X, Y), tn.jit(program, backend="webgpu")(X, Y))


def test_another_adapter_plans_again_and_says_so(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = BACKEND.target()
    other = replace(here, adapter="Another GPU", lanes=64)
    monkeypatch.setattr(Place, "target", lambda self: other)
    (code,) = PlanFile.read(saved.read_bytes()).codes()
    assert code.unusable() == f"it is for {here}; this is {other}"
    monkeypatch.undo()
    packed = msgpack.unpackb(code.pack())
    packed["target"][0] = "Another GPU"
    made = read_code(msgpack.packb(packed), Place())
    assert made.unusable() == f"it is for {replace(here, adapter='Another GPU')}; this is {here}"


def test_damaged_code_is_refused(saved: Path) -> None:
    (code,) = PlanFile.read(saved.read_bytes()).codes()
    good = msgpack.unpackb(code.pack())
    for name, value in (("codes", [99]), ("kernels", [[1, 2]]), ("target", []), ("parameters", 3)):
        with pytest.raises(PlanError, match="malformed code"):
            read_code(msgpack.packb({**good, name: value}), Place())
    fewer = read_code(msgpack.packb({**good, "codes": good["codes"][:1]}), Place())
    with pytest.raises(PlanError, match="its code is of another plan"):
        fewer.restore(lambda: BACKEND.plan(tn.trace(program, X, Y)))
    other = read_code(msgpack.packb({**good, "interface": 0}), Place())
    assert "in another way" in (other.unusable() or "")


def test_code_is_for_the_adapter_at_hand(tmp_path: Path) -> None:
    plan = tn.jit(program, backend="webgpu").plan(*SPECS)
    with pytest.raises(Unsupported, match="shaders are made for the adapter at hand"):
        plan.save(tmp_path / "other.plan", targets=("vulkan-another",))
    plan.save(tmp_path / "own.plan", targets=(backend_record("webgpu").target().name,))


def test_another_process_finds_it_on_disk(tmp_path: Path) -> None:
    code = (
        "import numpy as np, tenfold as tn\n"
        "f = tn.jit(lambda x: np.tanh(x).sum(axis=0), backend='webgpu')\n"
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
    assert [one[0] for one in said] == ["1", "0"]
    assert said[0][1] == said[1][1]
