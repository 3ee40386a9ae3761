"""Compile LLVM IR for the tests of loading and calling; run again in C what kernels gave."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import cache

import pytest

import tenfold as tn
from tenfold.backends.cpu.target import host_target
from tenfold.backends.llvm.target import target_machine
from tests.backends.as_c import COMPILER, differences
from tests.backends.cpu.filling import Fill, filling
from tests.backends.cpu.running import runs
from tests.fresh import settle


@cache
def _assemble(text: str) -> bytes:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmparser()  # some tests hold assembly
    module = llvm.parse_assembly(text)
    module.verify()
    data: bytes = target_machine(host_target()).emit_object(module)
    return data


@pytest.fixture(scope="session")
def assemble() -> Callable[[str], bytes]:
    return _assemble


@pytest.fixture
def fill(assemble: Callable[[str], bytes]) -> Fill:
    """Functions of a byte that give arrays full of it."""
    return filling(assemble)


@pytest.fixture
def alone() -> Iterator[None]:
    """No memory at rest, nothing counted, nobody else at work."""
    settle()
    gc.collect()
    limit = tn.config.kept_bytes
    tn.release_memory()
    tn.stats.reset()
    yield
    tn.config.kept_bytes = limit
    tn.release_memory()


@pytest.fixture(scope="module", autouse=True)
def _as_c(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whatever kernel a module's tests ran on a target with fma gives the same bits in C."""
    runs.clear()
    yield
    found = differences(runs.every, tmp_path_factory.mktemp("c")) if COMPILER else []
    runs.clear()
    if found:
        pytest.fail(f"{len(found)} runs differ in C\n\n" + "\n\n".join(found[:9]), pytrace=False)
