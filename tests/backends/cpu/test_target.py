"""The target found without LLVM is the one LLVM finds."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import llvmlite
import llvmlite.binding as llvm
import pytest

from tenfold.backends.cpu.target import (
    baseline,
    host_target,
    llvmlite_version,
    target_machine,
    target_with,
)

LINUX = "x86_64-unknown-linux-gnu"
V2 = ["cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"]
V3 = [*V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"]
V4 = [*V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"]


def test_host_agrees_with_llvm() -> None:
    found = [name for name, present in llvm.get_host_cpu_features().items() if present]
    assert target_with(llvm.get_process_triple(), found, llvmlite.__version__) == host_target()


def test_host_is_found_without_llvmlite() -> None:
    script = (
        "import sys; from tenfold.backends.cpu.target import host_target; host_target();"
        "assert 'llvmlite' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_version_is_llvmlites() -> None:
    assert llvmlite_version() == llvmlite.__version__


@pytest.mark.parametrize(
    ("features", "cpu", "vector", "masked"),
    [
        ([], "x86-64", 16, False),
        (V2, "x86-64-v2", 16, False),
        (V3, "x86-64-v3", 32, False),
        (V4, "x86-64-v4", 64, True),
    ],
)
def test_levels(features: list[str], cpu: str, vector: int, masked: bool) -> None:
    target = target_with(LINUX, features)
    assert (target.cpu, target.features) == (cpu, "")
    assert (target.vector_bytes, target.masked, target.lanes(4)) == (vector, masked, vector // 4)


def test_a_feature_beyond_the_level_is_named() -> None:
    target = target_with(LINUX, [*V2, "avx", "avx2", "fma"])
    assert target.cpu == "x86-64-v2"
    assert target.features == "+avx,+avx2,+fma"
    assert target.fma


def test_features_that_change_nothing_do_not_split_the_cache() -> None:
    assert target_with(LINUX, [*V4, "aes", "amx-tile"]).digest == target_with(LINUX, V4).digest


def test_digest_tells_targets_and_compilers_apart() -> None:
    targets = [target_with(LINUX, f, v) for f in (V2, V3, V4) for v in ("0.49.0", "0.50.0")]
    assert len({target.digest for target in targets}) == 6
    assert target_with(LINUX, V3[::-1], "0.50.0").digest == targets[3].digest


def test_what_is_missing_is_named() -> None:
    old, new = target_with(LINUX, V3, "0.49.0"), target_with(LINUX, V4, "0.50.0")
    assert old.missing_on(new) is None
    assert "avx512f" in (new.missing_on(old) or "")
    assert "windows" in (new.missing_on(replace(new, triple="x86_64-pc-windows-msvc")) or "")


@pytest.mark.parametrize("features", [[], V2, V3, V4])
def test_llvm_knows_every_level(features: list[str]) -> None:
    text = "define void @f(ptr %p) {\n  ret void\n}"
    machine = target_machine(target_with(LINUX, features))
    assert machine.emit_object(llvm.parse_assembly(text)).startswith(b"\x7fELF")


def test_baseline_keeps_the_compiler() -> None:
    base = baseline(host_target())
    assert base.llvmlite == host_target().llvmlite
    assert base.missing_on(host_target()) is None
