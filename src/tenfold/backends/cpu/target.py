"""The target of this process: what its processor has, or the lesser level that TENFOLD_TARGET asks
for. All is found without importing llvmlite, which is wanted on a cache miss only."""

from __future__ import annotations

import os
import sys
from functools import lru_cache

from tenfold.backends.llvm.target import (
    FEATURES,
    LEVELS,
    LLVMTarget,
    llvmlite_version,
    named,
    target_with,
)
from tenfold.errors import ValueProblem

# LLVM's name of each feature, and Linux's where it differs.
_LINUX = {
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "sahf": "lahf_lm",
    "bmi": "bmi1",
    "lzcnt": "abm",
    "avx512vnni": "avx512_vnni",
    "avxvnni": "avx_vnni",
}
VARIABLE = "TENFOLD_TARGET"  # of the environment: a lesser level than the machine's own


@lru_cache(maxsize=1)
def machine() -> LLVMTarget:
    """The machine this process runs on."""
    triple = _host_triple()
    features = _linux_features() if triple.startswith("x86_64") else frozenset[str]()
    if features is None:
        features = _llvm_features()
    return target_with(triple, features, llvmlite_version())


@lru_cache(maxsize=1)
def host_target() -> LLVMTarget:
    """What this process compiles for: its machine, or the lesser level that the environment asks
    for, by `TENFOLD_TARGET`."""
    asked, here = os.environ.get(VARIABLE), machine()
    if not asked:
        return here
    if asked in executable(here):
        return named(asked, here) if here.arch == "x86_64" else here
    known = here.arch == "x86_64" and asked in LEVELS
    why = f"this machine has {here.cpu} at best" if known else f"no level of {here.arch}"
    raise ValueProblem(
        f"{VARIABLE} is {asked!r}: {why}",
        fix=f"set it to one of {', '.join(executable(here))}, or not at all",
    )


def executable(target: LLVMTarget) -> tuple[str, ...]:
    """The levels whose code a target can run, the least first.

    >>> executable(named("x86-64-v2", target_with("x86_64-unknown-linux-gnu", ())))
    ('x86-64', 'x86-64-v2')
    """
    if target.arch != "x86_64":
        return (target.cpu,)
    return tuple(level for level in LEVELS if level <= target.cpu)


@lru_cache(maxsize=1)
def cache_bytes() -> int:
    """Bytes of the last cache before memory, as far as one program may count on them: what Linux
    says, but no less than 8 MiB and no more than 64; 32 where it says nothing. Of no account for
    what code computes, so it is no part of a target."""
    found = 32 << 20
    try:
        with open("/sys/devices/system/cpu/cpu0/cache/index3/size", "rb") as file:
            text = file.read().strip()
    except OSError:
        text = b""
    if text.endswith(b"K") and text[:-1].isdigit():
        found = int(text[:-1]) << 10
    return min(max(found, 8 << 20), 64 << 20)


def _host_triple() -> str:
    machine = os.uname().machine if hasattr(os, "uname") else "x86_64"
    arch = {"amd64": "x86_64", "AMD64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    if sys.platform == "darwin":
        return f"{'arm64' if arch == 'aarch64' else arch}-apple-darwin"
    if sys.platform == "win32":
        return f"{arch}-pc-windows-msvc"
    return f"{arch}-unknown-linux-gnu"


def _linux_features() -> frozenset[str] | None:
    """The processor's features as the kernel lists them: only what it also saves and restores."""
    try:
        with open("/proc/cpuinfo", "rb") as file:
            for line in file:
                if line.startswith(b"flags"):
                    flags = set(line.partition(b":")[2].decode("latin-1").split())
                    return frozenset(n for n in FEATURES if _LINUX.get(n, n) in flags)
    except OSError:
        pass
    return None


def _llvm_features() -> frozenset[str]:
    """The processor's features as LLVM finds them; none, the baseline, without llvmlite."""
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return frozenset()
    return frozenset(name for name, present in llvm.get_host_cpu_features().items() if present)
