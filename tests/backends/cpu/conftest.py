"""Compile LLVM IR for the tests of loading and calling."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from tenfold.backends.cpu.target import host_target
from tenfold.backends.llvm.target import target_machine


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
