"""The target found without LLVM is the one LLVM finds."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import pytest

import tenfold as tn
from tenfold.backends.cpu import backend as backend_module
from tenfold.backends.cpu import target as target_module
from tenfold.backends.cpu.target import (
    VARIABLE,
    cache_bytes,
    executable,
    host_target,
    machine,
)
from tenfold.backends.llvm.target import (
    llvmlite_version,
    named,
    target_machine,
    target_with,
)
from tenfold.errors import ValueProblem

LINUX = "x86_64-unknown-linux-gnu"
V2 = ["cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"]
V3 = [*V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"]
V4 = [*V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"]


def test_host_agrees_with_llvm() -> None:
    found = [name for name, present in llvm.get_host_cpu_features().items() if present]
    assert target_with(llvm.get_process_triple(), found, llvmlite.__version__) == machine()


@pytest.mark.parametrize(
    ("said", "found"),
    [(b"32768K\n", 32), (b"16384K\n", 16), (b"1024K\n", 8), (b"393216K\n", 64), (b"?", 32)],
)
def test_the_last_cache_is_as_large_as_linux_says_within_bounds(
    said: bytes, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.open", lambda *_: io.BytesIO(said))
    assert cache_bytes.__wrapped__() == found << 20


def test_where_nothing_is_said_of_caches_there_is_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", refused)
    assert cache_bytes.__wrapped__() == 32 << 20


def test_host_is_found_without_llvmlite() -> None:
    script = (
        "import sys; from tenfold.backends.cpu.target import host_target; host_target();"
        "assert 'llvmlite' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.fixture
def afresh() -> Iterator[None]:
    host_target.cache_clear()
    yield
    host_target.cache_clear()


@pytest.mark.usefixtures("afresh")
@pytest.mark.parametrize("level", executable(machine()))
def test_a_lesser_level_is_asked_for(monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    monkeypatch.setenv(VARIABLE, level)
    target = host_target()
    assert (target.cpu, target.triple, target.llvmlite) == (
        level,
        machine().triple,
        llvmlite.__version__,
    )
    assert target.missing_on(machine()) is None
    assert (target.digest == machine().digest) == (target == machine())


@pytest.mark.usefixtures("afresh")
def test_backends_say_which_level_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def said(features: list[str], level: str | None) -> str:
        here = target_with(LINUX, features, llvmlite.__version__)
        for module in (target_module, backend_module):
            monkeypatch.setattr(module, "machine", lambda: here)
        if level is None:
            monkeypatch.delenv(VARIABLE, raising=False)
        else:
            monkeypatch.setenv(VARIABLE, level)
        host_target.cache_clear()
        found: str = tn.backends()["cpu"]["target"]
        return found

    best, asked = "the best of this machine", "as TENFOLD_TARGET asks"
    assert said(V4, None) == f"x86-64-v4 ({LINUX}), {best}"
    assert said(V4, "x86-64-v3") == f"x86-64-v3 ({LINUX}), {asked}; {best} is x86-64-v4"
    dots, full = [*V4, "avx512vnni"], "x86-64-v4+avx512vnni"
    assert said(dots, None) == f"{full} ({LINUX}), {best}"
    assert said(dots, "x86-64-v4") == f"x86-64-v4 ({LINUX}), {asked}; {best} is {full}"


@pytest.mark.usefixtures("afresh")
@pytest.mark.parametrize(
    ("machine_of", "asked", "why", "possible"),
    [
        (V3, "x86-64-v4", "this machine has x86-64-v3 at best", "x86-64, x86-64-v2, x86-64-v3"),
        (V2, "avx2", "no level of x86_64", "x86-64, x86-64-v2"),
        (V2, "x86-64-v22", "no level of x86_64", "x86-64, x86-64-v2"),
        (None, "x86-64", "no level of aarch64", "generic"),
    ],
)
def test_a_level_that_can_not_be_had(
    monkeypatch: pytest.MonkeyPatch,
    machine_of: list[str] | None,
    asked: str,
    why: str,
    possible: str,
) -> None:
    here = target_with(LINUX if machine_of else "aarch64-unknown-linux-gnu", machine_of or ())
    monkeypatch.setattr(target_module, "machine", lambda: here)
    monkeypatch.setenv(VARIABLE, asked)
    with pytest.raises(ValueProblem) as raised:
        host_target()
    assert raised.value.message == f"TENFOLD_TARGET is '{asked}': {why}"
    assert f"one of {possible}, or not at all" in str(raised.value)


@pytest.mark.parametrize(
    ("arch", "asked", "known"),
    [
        ("x86_64", "generic", "x86-64, x86-64-v2, x86-64-v3, x86-64-v4"),
        ("aarch64", "x86-64-v3", "generic"),
    ],
)
def test_a_level_of_another_processor(arch: str, asked: str, known: str) -> None:
    with pytest.raises(ValueProblem) as raised:
        named(asked, target_with(f"{arch}-unknown-linux-gnu", ()))
    assert raised.value.message == f"'{asked}' is no level of {arch}"
    assert raised.value.fix == f"give one of {known}"


def test_a_level_has_its_own_code_and_certificates(tmp_path: Path) -> None:
    """In one cache: what is found there again is what the same level wrote."""
    script = """
import numpy as np, tenfold as tn
from tenfold.backends.cpu.target import host_target
f = tn.jit(lambda x: np.sort(np.exp(x)) * 2)
x = np.arange(20.0)[::-1].copy()
f(x)
made = [tn.stats()[name] for name in ("plans", "kernels_compiled", "cache_hits")]
print(host_target().cpu, f.certificate(x).target.split()[1], *made)
"""
    levels, found = executable(machine()), []
    for level in levels * 2:
        env = {**os.environ, VARIABLE: level, "TENFOLD_CACHE": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", script], env=env, check=True, capture_output=True, text=True
        )
        found.append(done.stdout.split())
    made = [[level, level, "1", "2", "0"] for level in levels]
    assert found == made + [[level, level, "0", "0", "1"] for level in levels]


def test_no_program_runs_at_a_level_that_can_not_be_had() -> None:
    script = "import numpy as np, tenfold as tn; tn.jit(lambda x: np.exp(x) * 2)(np.ones(9))"
    env = {**os.environ, VARIABLE: "avx2"}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert done.returncode
    assert "TENFOLD_TARGET is 'avx2': no level of" in done.stderr


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


@pytest.mark.parametrize(
    ("features", "named_so", "dots"),
    [
        ([*V4, "avx512vnni", "avxvnni"], "+avx512vnni", True),
        ([*V4, "avxvnni"], "", False),  # of half its registers
        ([*V3, "avxvnni"], "+avxvnni", True),
        ([*V3, "avx512vnni"], "", False),
        ([*V2, "avxvnni"], "", False),
        (V4, "", False),
    ],
)
def test_sums_of_products_of_bytes_belong_to_no_level(
    features: list[str], named_so: str, dots: bool
) -> None:
    """They are in the key, and code that has them says so where they are missing."""
    target = target_with(LINUX, features)
    plain = named(target.cpu, target)
    assert (target.features, target.dots, plain.dots) == (named_so, dots, False)
    assert (target.digest == plain.digest) == (not dots)
    assert plain.missing_on(target) is None
    assert target.missing_on(plain) == (f"it needs {named_so[1:]}" if dots else None)
    assert target.name == target.cpu + named_so
    assert named(target.name, plain) == target


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


def test_the_least_level_keeps_the_compiler() -> None:
    base = named(executable(host_target())[0], host_target())
    assert base.llvmlite == host_target().llvmlite
    assert base.missing_on(host_target()) is None
