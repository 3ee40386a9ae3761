"""The package itself: what `import tenfold` loads, and that every name leads to what it should."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tenfold as tn
from tenfold.backends.cpu.link.loader import route

HEAVY = ("llvmlite", "typer", "rich", "ctypes.util", "multiprocessing", "asyncio", "concurrent")


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh process has loaded after this code."""
    script = f"import sys\n{code}\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def of(package: str, modules: set[str]) -> list[str]:
    return sorted(m for m in modules if m == package or m.startswith(f"{package}."))


def test_importing_loads_no_part_before_it_is_asked_for() -> None:
    loaded = loaded_by("import tenfold")
    assert of("tenfold", loaded) == ["tenfold", "tenfold.locks"]  # what makes a fork safe
    assert not of("numpy", loaded)


def test_a_traced_program_needs_neither_planner_nor_compiler() -> None:
    loaded = loaded_by(
        "import numpy as np, tenfold as tn\n"
        "assert tn.jit(lambda x: np.tanh(x).sum(), compile='never')(np.zeros(3)) == 0\n"
        "assert (tn.asarray([1, 2]) + 1).tolist() == [2, 3]"
    )
    assert not [m for package in HEAVY for m in of(package, loaded)]
    unneeded = ("plan", "parity", "backends", "cache", "cli", "apps", "api.random")
    assert not [m for name in unneeded for m in of(f"tenfold.{name}", loaded)]


def test_a_plan_in_the_cache_runs_without_planner_and_compiler(tmp_path: Path) -> None:
    code = (
        f"import tenfold as tn; tn.config.cache = {str(tmp_path)!r}\n"
        "import numpy as np\n"
        "assert tn.jit(lambda x: np.tanh(x).sum())(np.zeros(3)) == 0\n"
    )
    assert of("tenfold.backends.llvm.library", loaded_by(code))
    again = loaded_by(code)
    assert not [m for package in HEAVY for m in of(package, again)]
    unneeded = (
        "plan.steps.build",
        "plan.fusion",
        "plan.lowering",
        "parity.check",
        "kernel.ir.build",
        "backends.file",
        "backends.cpu.capabilities",
        "backends.cpu.emit",
        "backends.llvm.library",
        "backends.cpu.library.sort.sort",
        "backends.cpu.run.freeze",
        "backends.cpu.schedule",
    )
    assert not [m for name in unneeded for m in of(f"tenfold.{name}", again)]


TEN_KERNELS = """
import numpy as np
import tenfold as tn
def program(x):
    outs = []
    for i in range(10):
        y = x[:, : 8 + i]
        outs.append((np.tanh(y * 1.5 + i) * y).sum())
    return outs
tn.jit(program)(np.ones((64, 18), "float32"))
"""


@pytest.mark.skipif(route() != "elf", reason="code is loaded from files on Linux only")
def test_a_second_process_imports_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each module takes a quarter of a millisecond, and `import numpy` a hundred."""
    monkeypatch.setenv("TENFOLD_CACHE", str(tmp_path))
    first = loaded_by(TEN_KERNELS)
    assert of("tenfold.backends.llvm.library", first)
    again = loaded_by(TEN_KERNELS)
    unneeded = (
        *("api.policy", "api.explain_cache", "api.keywords", "api.pickling", "api.call.buckets"),
        *("backends.cpu.emit", "backends.cpu.schedule", "backends.cpu.loop.walk", "backends.file"),
        *("backends.cpu.entry.text", "backends.cpu.run.steps", "backends.cpu.threads.text"),
        *("backends.cpu.link.link", "backends.cpu.run.bytecode", "backends.llvm.text"),
        *("kernel.ir.kernel", "kernel.analyse", "kernel.maths", "kernel.passes"),
        *("ops.agreement.errors", "ops.algebra", "ops.numbers", "ops.rows.indexing"),
        *("parity.check", "parity.rule", "parity.verdict", "plan.steps", "plan.passes"),
        *("plan.fusion", "plan.lowering", "trace.control", "trace.surface.algebra"),
        *("trace.surface.numbers", "trace.surface.searching", "trace.surface.shaping.joining"),
        *("trace.surface.selecting.places", "trace.convert.convert", "transform"),
    )
    assert not [m for name in unneeded for m in of(f"tenfold.{name}", again)]
    assert len(of("tenfold", again)) <= 190
    elsewhere = ("json", "logging", "hmac", "zlib", "pkgutil", "importlib.util", "concurrent")
    numpys = loaded_by("import numpy")
    assert not [m for m in elsewhere if m in again and m not in numpys]


@pytest.mark.skipif(route() != "elf", reason="code is loaded from files on Linux only")
def test_a_short_process_leaves_the_rest_of_a_check_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To go on with it the planner and the check have to be imported: a process that ends with its
    first result would do so for nothing, and one that lives on does."""
    monkeypatch.setenv("TENFOLD_CACHE", str(tmp_path))
    partial = (
        "from importlib import import_module\n"
        "checking, module = map(import_module, ('tenfold.api.checking', 'tenfold.parity.check'))\n"
        "check, checking.go_on = module.check, lambda *_: None\n"  # nothing goes on in this one
        "module.check = lambda *args, **options: check(*args[:4], 0.0)\n"
    )
    state = "from tenfold.cache import plans\n(_, held), = plans._held.values()\nassert {}\n"
    loaded_by(partial + TEN_KERNELS + state.format("not held.certificate.complete"))
    again = loaded_by(TEN_KERNELS + state.format("not held.certificate.complete"))
    assert not of("tenfold.parity.check", again)
    assert not of("tenfold.plan.steps.build", again)
    waits = "assert held.checking.done.wait(60) and held.certificate.complete\n"
    assert of("tenfold.parity.check", loaded_by(TEN_KERNELS + state.format("held") + waits))
    loaded_by(TEN_KERNELS + state.format("held.certificate.complete"))


def test_parts_do_not_hide_names() -> None:
    """`tenfold.trace` is a package and `tn.trace` a function."""
    loaded_by(
        "import tenfold.trace.array, tenfold.parity.rule.agree, tenfold.config, tenfold.stats\n"
        "import tenfold as tn\n"
        "from tenfold import parity\n"
        "assert tn.trace.__module__ == 'tenfold.api.graphs', tn.trace\n"
        "assert parity.__module__ == 'tenfold.api.parity', parity\n"
        "assert tn.config.cache_bytes and callable(tn.stats)\n"
    )


def test_a_function_of_two_names_is_one() -> None:
    code = (
        "import tenfold as tn\n"
        "first = tn.matrix_transpose\n"
        "assert tn.linalg.matrix_transpose is first\n"
        "from tenfold.api.namespace import manipulation\n"
        "assert manipulation.matrix_transpose is first\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_stub_gives_the_same_names() -> None:
    """What type checkers see is what there is."""
    stub = ast.parse(Path(tn.__file__).with_suffix(".pyi").read_text())
    seen = {"__array_api_version__": tn.__array_api_version__}
    for line in stub.body:
        if isinstance(line, ast.ImportFrom) and str(line.module).startswith("tenfold"):
            for alias in line.names:
                assert alias.asname == alias.name
                home = __import__(str(line.module), fromlist=[alias.name])
                asked = getattr(tn, alias.name)  # which makes an entry of a function
                seen[alias.name] = getattr(home, alias.name)
                assert asked is seen[alias.name], alias.name
    assert sorted(seen) == tn.__all__
    assert set(tn.__all__) <= set(dir(tn))
