"""PTX of kernels: made for several chips by LLVM, and assembled where there is an assembler."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.schedule.schedule import tune
from tenfold.backends.cuda.compile import module_text, prepare, to_ptx
from tenfold.backends.cuda.run.kernels import prepared
from tenfold.backends.cuda.target import CudaTarget, named
from tenfold.backends.llvm.target import llvmlite_version
from tenfold.backends.registry import backend_named
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.kernel.passes.generalise import generalise

ROOT = Path(__file__).parents[3]
CHIPS = ("sm_80", "sm_90", "sm_100")


@pytest.fixture(scope="module")
def cases() -> Iterator[dict[str, SizedKernel]]:
    """The kernels of the benchmark, by name. It pins its process when it is imported; not here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", os.environ.copy())
        patch.setattr(os, "sched_setaffinity", lambda *_: None, raising=False)
        place = importlib.util.spec_from_file_location(
            "benchmark_kernels", ROOT / "benchmarks" / "kernels.py"
        )
        assert place is not None
        assert place.loader is not None
        module: Any = importlib.util.module_from_spec(place)
        patch.setitem(sys.modules, "benchmark_kernels", module)
        place.loader.exec_module(module)
        made = (case() for makers in module.CASES.values() for case in makers)
        yield {c.name: generalise(tune(c.kernel)) for c in made if not isinstance(c.kernel, str)}


_COMPILED: dict[CudaTarget, dict[str, str]] = {}


def compiled(calls: dict[str, SizedKernel], target: CudaTarget) -> dict[str, str]:
    """The PTX of each kernel, made once for a target."""
    if target not in _COMPILED:
        texts = {name: prepare(call, target)[0] for name, call in calls.items()}
        _COMPILED[target] = {
            name: to_ptx(module_text([text], target), target) for name, text in texts.items()
        }
    return _COMPILED[target]


@cache
def ptxas() -> str | None:
    """The assembler: of a toolkit, or of NVIDIA's wheel."""
    found = shutil.which("ptxas")
    if found is None:
        wheels = Path(importlib.util.find_spec("llvmlite").origin).parents[1]  # type: ignore[union-attr, arg-type]
        found = next((str(p) for p in sorted(wheels.glob("nvidia/*/bin/ptxas"))), None)
    return found


def assembled(ptx: str, target: CudaTarget) -> str:
    """What the assembler says of registers and memory."""
    place = ptxas()
    if place is None:
        pytest.skip("there is no ptxas: pip install nvidia-cuda-nvcc")
    command = [place, "-v", f"-arch=sm_{target.capability}", "-o", os.devnull, "-"]
    done = subprocess.run(command, input=ptx, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return done.stderr


@pytest.mark.parametrize("chip", CHIPS)
def test_kernels_of_the_benchmark(cases: dict[str, SizedKernel], chip: str) -> None:
    target = named(chip, llvmlite_version())
    for ptx in compiled(cases, target).values():
        assert f".target {chip}" in ptx
        assert ".visible .entry tn_" in ptx


@pytest.mark.parametrize("chip", CHIPS)
def test_they_are_assembled_without_local_memory(cases: dict[str, SizedKernel], chip: str) -> None:
    target = named(chip, llvmlite_version())
    for name, ptx in compiled(cases, target).items():
        if name.startswith("scatter"):
            continue  # the sort of their places is the library's
        said = assembled(ptx, target)
        frames = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill", said)
        assert frames
        # A thread of 1024 has 64 registers: where it keeps half of them, some wait once.
        most = 16 if ".maxntid 1024" in ptx and "cluster" in ptx else 0
        assert max(int(n) for frame in frames for n in frame) <= most, f"{name}\n{said}"


@pytest.mark.parametrize(("chip", "cache"), [("sm_80", r"\.nc"), ("sm_90", "")])
def test_wide_loads(cases: dict[str, SizedKernel], chip: str, cache: str) -> None:
    """By the cache of what stays, unless kernels overlap."""
    made = compiled(cases, named(chip, llvmlite_version()))
    for name in ("x*y+b 1024x1024", "softmax last 1024x1024", "layernorm 1024x1024"):
        assert re.search(rf"ld\.global{cache}\.v4\.(f32|b32)", made[name]), name
        assert re.search(r"st\.global\.v4\.(f32|b32)", made[name]), name


def test_a_half_that_was_a_bfloat_is_compared_with_zero() -> None:
    """LLVM ended the process where it saw both."""
    x = np.zeros(300, ml_dtypes.bfloat16)
    graph = tn.trace(lambda x: (x * x).view(np.float16) == 0, x)
    target = named("sm_90", llvmlite_version())
    plan = backend_named("cuda:sm_90").plan(graph)
    texts = [text for text, _ in prepared(plan, target, False).values()]
    assert "setp" in to_ptx(module_text(texts, target), target)
