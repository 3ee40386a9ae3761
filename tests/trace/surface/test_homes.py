"""What is imported when NumPy's functions are first traced, and that nothing goes missing by it."""

from __future__ import annotations

import builtins
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import tenfold as tn
from tenfold.trace import homes
from tenfold.trace.tables import FUNCTIONS, METHODS, UFUNCS


def run(code: str) -> str:
    """What a fresh process prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


FILED = """
import sys
from tenfold.trace import homes, tables

found = {}
put_by = tables.Filed.__setitem__
def note(self, key, value):
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>":
        frame = frame.f_back
    found.setdefault(frame.f_globals["__name__"], set()).add(
        "." + key if isinstance(key, str) else getattr(key, "__name__", type(key).__name__)
    )
    put_by(self, key, value)
tables.Filed.__setitem__ = note
tables.import_all()
listed = {f"tenfold.trace.{home}": set(names.split()) for home, names in homes.HOMES.items()}
for module in sorted(found.keys() | listed.keys()):
    if found.get(module) != listed.get(module):
        print(module, found.get(module, set()) ^ listed.get(module, set()))
"""


def test_the_list_names_what_each_module_files() -> None:
    assert run(FILED) == ""


def test_what_the_list_does_not_name_is_found_too() -> None:
    assert not (
        run(
            "import numpy as np\n"
            "from tenfold.trace import homes\n"
            "homes.HOME.clear()\n"
            "from tenfold.trace.tables import FUNCTIONS, UFUNCS\n"
            "assert FUNCTIONS[np.pad].__module__.endswith('padding')\n"
            "assert np.gcd in UFUNCS and len not in FUNCTIONS"
        )
    )


def test_a_function_brings_its_module_and_no_other() -> None:
    before, after = (
        {m for m in run(f"{code}\nimport sys; print(*sys.modules)").split() if ".surface." in m}
        for code in (
            "import numpy as np, tenfold as tn\ntn.asarray([1.0]) + 1",
            "import numpy as np, tenfold as tn\nnp.interp(1.0, tn.asarray([1.0]) + 1, [2.0])",
        )
    )
    assert "tenfold.trace.surface.searching.lookup" in after - before
    assert not any("algebra" in m or "quantiles" in m for m in after)


def test_modules_imported_while_a_function_is_traced() -> None:
    """NumPy's constructors are substitutes then."""
    assert not (
        run(
            "import numpy as np, tenfold as tn\n"
            "from tenfold.trace.swap.constructors import substitutes\n"
            "from tenfold.trace.tables import FUNCTIONS, import_all\n"
            "def f(x):\n"
            "    import_all()\n"
            "    return np.column_stack([x, np.zeros(3), np.tile(x, 1)])\n"
            "x = np.arange(3.0)\n"
            "expected = [[0, 0, 0], [1, 0, 1], [2, 0, 2]]\n"
            "assert tn.jit(f, compile='never')(x).tolist() == expected\n"
            "for function in (np.column_stack, np.stack, np.full_like, np.array):\n"
            "    assert function in FUNCTIONS\n"
            "made = [one for one in substitutes() if one.original in FUNCTIONS]\n"
            "assert len(made) > 30\n"
            "for one in made:\n"
            "    assert FUNCTIONS[one] is FUNCTIONS[one.original]\n"
            "s = tn.jit(lambda x: np.array(x[x > 0]), compile='never')(x)\n"
            "assert s.tolist() == [1, 2]\n"
        )
    )


SLOW = """
import builtins, time
from tenfold.trace.tables import FUNCTIONS

def slow():
    return LATER

FUNCTIONS["slow"] = slow
builtins.slow_home.set()
time.sleep(0.2)
LATER = 1
"""


def test_a_thread_sees_what_a_module_files_when_the_module_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_home.py").write_text(SLOW)
    begun = threading.Event()
    monkeypatch.setattr(builtins, "slow_home", begun, raising=False)
    monkeypatch.setattr(sys.modules["tenfold.trace"], "__path__", [str(tmp_path)])
    monkeypatch.setitem(homes.HOME, ".slow", "slow_home")
    other = threading.Thread(target=lambda: FUNCTIONS["slow"])
    other.start()
    try:
        assert begun.wait(60)
        assert FUNCTIONS["slow"]() == 1
    finally:
        other.join()
        del FUNCTIONS._put_by["slow"]
        dict.pop(FUNCTIONS, "slow")
        del sys.modules["tenfold.trace.slow_home"]


def test_tables_have_all_when_all_are_asked_for() -> None:
    assert {np.sum, np.pad, np.linalg.qr, "getitem", "scipy"} <= set(FUNCTIONS)
    assert {np.add, np.equal, np.matmul, np.gcd} <= set(UFUNCS)
    assert set(METHODS) == {"reduce", "reduceat", "accumulate", "outer", "at"}


def test_an_array_made_of_a_selection_is_a_copy() -> None:
    def f(x: tn.Array) -> tn.Array:
        chosen = x[x > 1]
        other = np.array(chosen)
        other += 1
        return chosen.sum()

    assert tn.jit(f, compile="never")(np.arange(4.0)) == 5
