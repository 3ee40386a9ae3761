"""The environment of peers' processes, and facts about the machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

# What keeps each peer to AVX2.
AVX2 = {
    "TENFOLD_TARGET": "x86-64-v3",
    "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "",
    "TORCHINDUCTOR_CPP_SIMDLEN": "256",
}


def settings(level: str | None, threads: int) -> dict[str, str]:
    """The environment of workers."""
    found = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS",
             "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS",
             "TENFOLD_THREADS")}  # fmt: skip
    if level == "x86-64-v3":
        found |= AVX2
        # What Inductor kept of a run with AVX-512 is not to be used: results were wrong after one.
        found["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
        had = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
        off = [f for f in had if f.startswith(("AVX512", "X86_V4"))]
        if off:
            found["NPY_DISABLE_CPU_FEATURES"] = " ".join(off)
    return found


def machine() -> dict[str, Any]:
    """Facts about this machine and the peers."""
    names = ("tenfold", "numpy", "numexpr", "jax", "torch", "numba")
    versions = {}
    for name in names:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    model = platform.processor() or platform.machine()
    try:
        rows = [line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines()]
        told = {name.strip(): value.strip() for name, _, value in rows}
        model = told.get("model name", model)
        if "cpu family" in told:  # one name may stand for several generations
            model += f" (family {told['cpu family']}, model {told['model']})"
    except OSError:
        pass
    return {"processor": model, "cores": os.cpu_count(), "versions": versions}
