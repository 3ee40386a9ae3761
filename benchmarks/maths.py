"""The vector maths beside NumPy: nanoseconds an element, and the largest error in ulp.

    python benchmarks/maths.py [function ...]

One thread, 16 lanes, 16,384 elements in cache, the least of many rounds. Columns are instruction
sets that this machine has; erf, erfc and the sigmoid are beside SciPy's. The errors are taken on
these elements against the same function of a wider float, where there is one, so they are samples
of the bounds that tests/backends/cpu/test_maths.py checks.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from scipy import special

from tenfold.backends.llvm.maths import AVX2, AVX512, BASELINE, FUNCTIONS, Target
from tenfold.backends.llvm.maths.loops import loop_name, module

Array = np.ndarray[Any, Any]
SIZE = 16384
PROCESSORS = {
    "avx512": (AVX512, "skylake-avx512", "avx512vl"),
    "avx2": (AVX2, "haswell", "avx2"),
    "baseline": (BASELINE, "x86-64", "sse2"),
}
PEERS: dict[str, Callable[..., Array]] = {
    "sigmoid": special.expit,
    "erf": special.erf,
    "erfc": special.erfc,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
POSITIVE = {"log", "log2", "log10", "log1p", "sqrt", "rsqrt", "pow", "acosh"}
UNIT = {"asin", "acos", "atanh"}
ENGINES: list[Any] = []  # they own the code


def compiled(name: str, dtype: str, target: Target, cpu: str) -> Any:
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, opt=2, reloc="pic", codemodel="small", jit=True
    )
    head = f'target triple = "{machine.triple}"\ntarget datalayout = "{machine.target_data}"\n'
    parsed = llvm.parse_assembly(head + module([(name, dtype)], 16, target))
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_instruction_combine_pass()
    passes.add_new_gvn_pass()
    passes.add_dead_code_elimination_pass()
    options = llvm.create_pipeline_tuning_options(2)
    passes.run(parsed, llvm.create_pass_builder(machine, options))
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    ENGINES.append(engine)
    pointers = [ctypes.c_void_p] * (FUNCTIONS[name].arity + 1)
    address = engine.get_function_address(loop_name(name, dtype))
    return ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64)(address)


def nanoseconds(work: Callable[[], object]) -> float:
    """The least time an element over many rounds."""
    best = float("inf")
    for _ in range(40):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best / SIZE * 1e9


def arguments(name: str, real: type[Any]) -> list[Array]:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(FUNCTIONS[name].arity):
        x = rng.uniform(-8, 8, SIZE)
        if name in POSITIVE:
            x = np.exp(x / 3) + (name == "acosh")
        found.append((x / 8.1 if name in UNIT else x).astype(real))
    return found


def ulp(got: Array, true: Array | None) -> float:
    if true is None:
        return float("nan")
    want = true.astype(got.dtype)
    unit = np.spacing(np.maximum(np.abs(want), np.finfo(got.dtype).tiny))
    with np.errstate(all="ignore"):
        off = np.abs(got.astype(np.longdouble) - true) / unit
    return float(np.max(off[np.isfinite(true)]))


def report(name: str, real: type[Any]) -> str:
    dtype = "f32" if real is np.float32 else "f64"
    peer = PEERS.get(name) or getattr(np, name)
    inputs = arguments(name, real)
    true = None
    if name in ("erf", "erfc"):  # SciPy has none for long doubles
        if real is np.float32:
            true = peer(*(x.astype(np.float64) for x in inputs)).astype(np.longdouble)
    else:
        true = peer(*(x.astype(np.longdouble) for x in inputs))
    out = np.empty_like(inputs[0])
    pointers = [x.ctypes.data for x in [*inputs, out]]
    cells = []
    for target, cpu, feature in PROCESSORS.values():
        if not llvm.get_host_cpu_features().get(feature, False):
            cells.append(f"{'':15}")
            continue
        loop = compiled(name, dtype, target, cpu)
        spent = nanoseconds(lambda loop=loop: loop(*pointers, SIZE))  # type: ignore[misc]
        cells.append(f"{spent:8.3f} ({ulp(out, true):.2f})")
    if isinstance(peer, np.ufunc):
        spent = nanoseconds(lambda: peer(*inputs, out=out))
    else:
        spent = nanoseconds(lambda: peer(*inputs))
    cells.append(f"{spent:8.3f} ({ulp(peer(*inputs), true):.2f})")
    return f"{name:10} {dtype}" + "".join(cells)


def main(names: list[str]) -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    print("ns an element (ulp)" + "".join(f"{p:^15}" for p in [*PROCESSORS, "NumPy"]))
    for name in names or FUNCTIONS:
        for real in (np.float32, np.float64):
            print(report(name, real), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
