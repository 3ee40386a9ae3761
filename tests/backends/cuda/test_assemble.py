"""NVIDIA's assembler: found where it lies, and given what the compiler makes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tenfold.backends.cuda import assemble, find
from tenfold.backends.cuda.assemble import Assembler, Cubin, ModuleCode, assembler, modules
from tenfold.backends.cuda.code import code_for
from tenfold.backends.cuda.target import CHIPS, named
from tenfold.backends.llvm.target import llvmlite_version
from tenfold.backends.registry import backend_record
from tenfold.errors import DeviceProblem
from tenfold.graph import Graph
from tests.backends.cuda.drawn import graph_of

ELF = b"\x7fELF"
needs_ptxas = pytest.mark.skipif(
    assembler() is None, reason="there is no ptxas: pip install nvidia-cuda-nvcc"
)


def program(x: Any, y: Any) -> Any:
    return np.tanh(x) * y + x.sum(axis=0), np.sort(y, axis=0), x @ y.T


def planned(chip: str) -> tuple[Any, Any]:
    graph: Graph = graph_of(program, np.ones((8, 4), np.float32), np.ones((8, 4), np.float32))
    record = backend_record(f"cuda:{chip}")
    return record.plan(graph), record.target()


@pytest.fixture(autouse=True)
def looked_anew() -> Any:
    yield
    find.find_ptxas.cache_clear()
    assembler.cache_clear()


def fake(folder: Path, text: str) -> Path:
    """An assembler that is a script."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ptxas"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_where_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "glob", lambda pattern: [])
    monkeypatch.setattr(find, "_packages", lambda name: [])
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)

    def found() -> str | None:
        find.find_ptxas.cache_clear()
        return find.find_ptxas()

    assert found() is None
    triton = fake(tmp_path / "triton" / "backends" / "nvidia" / "bin", "exit 0")
    packages = {"triton": [str(tmp_path / "triton")]}
    monkeypatch.setattr(find, "_packages", lambda name: packages.get(name, []))
    assert found() == str(triton)
    toolkit = fake(tmp_path / "toolkit" / "bin", "exit 0")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    assert found() == str(toolkit)
    path = fake(tmp_path / "path", "exit 0")
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "path"), "/usr/bin", "/bin"]))
    assert found() == str(path)


def test_in_the_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = fake(tmp_path / "nvidia" / "cu13" / "bin", "exit 0")
    packages = {"nvidia": [str(tmp_path / "nvidia")]}
    monkeypatch.setattr(find, "_packages", lambda name: packages.get(name, []))
    monkeypatch.setattr(find, "_toolkits", lambda: iter(()))
    monkeypatch.setattr(find.shutil, "which", lambda name: None)
    find.find_ptxas.cache_clear()
    assert find.find_ptxas() == str(wheel)


def test_what_it_says_of_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake(tmp_path, "echo 'Cuda compilation tools, release 12.8, V12.8.93'")
    monkeypatch.setattr(assemble, "find_ptxas", lambda: str(path))
    assembler.cache_clear()
    assert assembler() == Assembler(str(path), "12.8")
    fake(tmp_path, "exit 1")
    assembler.cache_clear()
    assert assembler() is None


def test_what_it_refuses(tmp_path: Path) -> None:
    refusing = Assembler(str(fake(tmp_path, "echo 'line 3: syntax error' >&2; exit 1")), "13.0")
    with pytest.raises(DeviceProblem, match="line 3: syntax error"):
        refusing("text", "sm_90")
    told = "Value 'sm_100' is not defined for option 'gpu-name'"
    old = Assembler(str(fake(tmp_path, f'echo "{told}" >&2; exit 1')), "12.0")
    assert old("text", "sm_100") is None


def test_what_machine_code_runs_on() -> None:
    cubin = Cubin("sm_80", "12.8", b"")
    assert cubin.runs_on(80, 12040)
    assert cubin.runs_on(86, 13000)
    assert not cubin.runs_on(90, 13000)
    assert not Cubin("sm_86", "12.8", b"").runs_on(80, 13000)
    assert not Cubin("sm_80", "13.0", b"").runs_on(80, 12080)
    code = ModuleCode(named("sm_80"), "", "ptx", [Cubin("sm_80", "12.8", b"machine code")])
    assert code.image(86, 13000) == b"machine code"
    assert code.image(90, 13000) == b"ptx"


def test_kernels_in_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    from tenfold.backends.cuda.run.kernels import prepared

    plan, target = planned("sm_90")
    texts = list({t.name: t for t, _ in prepared(plan, target, False).values()}.values())
    assert len(texts) > 2
    monkeypatch.setattr(assemble, "assembler", lambda: None)
    assert len(modules(texts, target)) == 1  # the driver takes one at a time
    monkeypatch.setattr(assemble, "assembler", lambda: Assembler("", "13.0"))
    monkeypatch.setattr(assemble, "processors", lambda: 2)
    two = modules(texts, target)
    assert [bool(one.kernels) for one in two] == [True, True]
    assert sorted(name for one in two for name in one.kernels) == sorted(t.name for t in texts)


@needs_ptxas
@pytest.mark.parametrize("chip", ["sm_80", "sm_90", "sm_100"])
def test_it_takes_what_is_made(chip: str) -> None:
    plan, target = planned(chip)
    code = code_for(plan, target, False)
    assert code.modules
    for one in code.modules:
        assert f".target {chip}" in one.ptx
        (cubin,) = one.cubins
        assert cubin.data.startswith(ELF)
        assert cubin.chip == chip


@needs_ptxas
def test_it_refuses_nonsense() -> None:
    found = assembler()
    assert found is not None
    with pytest.raises(DeviceProblem, match="ptxas"):
        found(".version 8.0\n.target sm_90\nnonsense\n", "sm_90")


@needs_ptxas
def test_an_unknown_chip() -> None:
    found = assembler()
    assert found is not None
    text = ".version 8.0\n.target sm_90\n.address_size 64\n"
    assert found(text, "sm_999") is None


def test_ptx_of_every_chip() -> None:
    """LLVM ends the process where a chip and a version of PTX do not fit: each is tried here."""
    for chip in CHIPS:
        target = named(f"sm_{chip}", llvmlite_version())
        text = "define ptx_kernel void @k() {\n  ret void\n}\n"
        ptx = ModuleCode(target, text).ptx
        assert f".target sm_{chip}" in ptx
        assert f".version {target.ptx // 10}.{target.ptx % 10}" in ptx
