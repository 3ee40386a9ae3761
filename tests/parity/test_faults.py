"""Planted faults: the plan is refused, bisect names the place, its script shows it."""

import os
import subprocess
import sys
from pathlib import Path

import faults
import numpy as np
import pytest
from faults import plant

import tenfold as tn
from tenfold.cache import plans

sys.path.insert(0, str(Path(__file__).parent))
from programs import FAULTS, softmax, X  # noqa: I001


@pytest.fixture(autouse=True)
def _fresh():
    """No plan from before, none left behind."""
    plans.clear()
    yield
    plans.clear()


def leaves(result):
    return [np.asarray(r) for r in _flat(result)]


def _flat(result):
    if isinstance(result, tuple):
        return [leaf for item in result for leaf in _flat(item)]
    return [result]


def runs(script: str) -> int:
    """The exit status of a script, run in this process."""
    with pytest.raises(SystemExit) as stop:
        exec(compile(script, "script", "exec"), {"__name__": "__main__"})
    return int(stop.value.code)


def test_there_are_enough():
    assert len(FAULTS) >= 30
    assert len({f.kind for f in FAULTS}) >= 12


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_refused_named_and_shown(fault, capsys):
    wanted = leaves(tn.jit(fault.function, compile="never")(*fault.arguments))
    with plant(fault.kind, fault.argument):
        f = tn.jit(fault.function)
        with pytest.warns(tn.ParityWarning, match="disagrees"):
            first = f(*fault.arguments)
        second = f(*fault.arguments)  # by the reference, without another word
        if fault.kind != "guard":
            for got in (first, second):
                for a, b in zip(leaves(got), wanted, strict=True):
                    np.testing.assert_array_equal(a, b)
        found = tn.bisect(f, *fault.arguments, script=None)
        assert found.disagreement is not None
        if fault.kind == "guard":
            assert found.disagreement.kind == "guard"
        else:
            assert found.node is not None
            assert found.node.op in fault.blamed, str(found)
        assert runs(found.script) == 1
    assert runs(found.script) == 0
    assert "reference" in capsys.readouterr().out or fault.kind == "guard"


@pytest.mark.parametrize("number", [0, 35, 48])
def test_the_script_stands_alone(number, tmp_path):
    fault = FAULTS[number]
    with plant(fault.kind, fault.argument):
        found = tn.bisect(fault.function, *fault.arguments, script=tmp_path / "show.py")
    assert found.path is not None
    assert "import programs" not in found.path.read_text()
    faulty = [sys.executable, str(Path(faults.__file__)), f"{fault.kind} {fault.argument}"]
    there = {**os.environ, "PYTHONPATH": str(Path(tn.__file__).parents[1])}
    run = subprocess.run(
        [*faulty, str(found.path)], env=there, capture_output=True, check=False, cwd=tmp_path
    )
    assert run.returncode == 1, run.stderr.decode()
    assert b"Traceback" not in run.stderr


def test_inputs_are_made_small(tmp_path):
    with plant("instruction", "exp>exp2"):
        large = np.random.default_rng(0).normal(size=(300, 200)).astype("f4")
        found = tn.bisect(softmax, large, script=tmp_path / "s.py")
    assert found.case is not None
    assert sum(a.size for a in found.case.arrays) <= 8
    assert len(found.case.graph.nodes) == 1
    assert len(found.script.splitlines()) < 20


def test_a_hidden_fault_names_its_kernel(monkeypatch):
    monkeypatch.setattr(
        sys.modules["tenfold.parity.find.bisect"], "first_diverging", lambda *_: None
    )
    with plant("instruction", "exp>exp2"):
        found = tn.bisect(softmax, X, script=None)
    assert found.disagreement is not None
    assert found.disagreement.hidden
    assert "kernel" in str(found)
    assert "hides the fault" in str(found)


def test_strict_raises_every_time():
    with plant("instruction", "exp>exp2"):
        f = tn.jit(softmax, strict=True)
        for _ in range(2):
            with pytest.raises(tn.ParityError, match=r"(?s)exp.*programs\.py"):
                f(X)


def test_the_warning_names_step_node_and_line():
    with plant("instruction", "exp>exp2"), pytest.warns(tn.ParityWarning) as seen:
        tn.jit(softmax)(X)
    text = str(seen[0].message)
    assert "step 0, kernel" in text
    assert "first diverging node: exp" in text
    assert "programs.py" in text
    assert seen[0].filename == __file__


def test_parity_shows_the_node():
    with plant("instruction", "exp>exp2"):
        found = tn.parity(softmax, X)
    assert not found.agrees
    wrong = [row.op for row in found if row.wrong]
    assert wrong[0] == "exp"
    assert "WRONG" in str(found)


def test_what_is_judged_is_the_donated_plan():
    """The plan that runs is looked at, with its donation, and the arguments stay as they are."""

    def step(x, y):
        x *= 2
        x[0] = y
        return x.sum(), np.tanh(x)

    f = tn.jit(step, donate="x")
    x, y = np.linspace(1, 2, 3000).reshape(1000, 3), np.float64(3)
    before = x.copy()
    with plant("instruction", "tanh>sin"), pytest.warns(tn.ParityWarning):
        f(x.copy(), y)
    found = tn.bisect(f, x, y, script=None)
    assert found.disagreement is not None
    assert not tn.parity(f, x, y).agrees
    assert np.array_equal(x, before)
    plans.clear()
    good = tn.jit(lambda x, y: step(x, y), donate="x")
    assert tn.bisect(good, x, y, script=None).disagreement is None
    assert tn.parity(good, x, y).agrees
    assert np.array_equal(x, before)
