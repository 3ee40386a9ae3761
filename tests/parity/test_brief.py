"""Plans of kernels that were judged before are checked in brief, and faults in them are found."""

import sys
from pathlib import Path

import faults
import numpy as np
import pytest
from faults import plant

import tenfold as tn
from tenfold.cache import plans
from tenfold.parity.rule.agree import closely

sys.path.insert(0, str(Path(__file__).parent))
from programs import FAULTS, softmax, X  # noqa: I001


@pytest.fixture(autouse=True)
def _fresh():
    """No plan from before, none left behind, and none from disk."""
    cache, tn.config.cache = tn.config.cache, None
    plans.clear()
    yield
    plans.clear()
    tn.config.cache = cache


def certified(function, *arguments):
    """A new function's certificate after one call."""
    plans.clear()
    f = tn.jit(lambda *args: function(*args), verify=60.0)
    f(*arguments)
    return f.certificate(*arguments)


def brief(certificate):
    return any(note.startswith("in brief") for note in certificate.notes)


def test_known_kernels_are_checked_in_brief():
    certified(softmax, X)
    found = certified(softmax, X)
    assert brief(found)
    assert found.complete
    assert found.whole
    assert found.kernels
    assert len(found.steps) == 1
    assert 0 < found.ulp < 100


def test_a_check_in_brief_goes_on_in_the_background():
    """Where the time of the first call is not enough for it."""
    certified(softmax, X)
    plans.clear()
    f = tn.jit(lambda x: softmax(x), verify=0.0)
    f(X)
    assert f.ready(60)
    found = f.certificate(X)
    assert brief(found)
    assert found.complete


def test_what_goes_on_for_new_kernels_is_not_brief():
    f = tn.jit(lambda x: np.sin(x * 1.75) / np.cosh(x), verify=0.0)
    f(X)
    assert f.ready(60)
    found = f.certificate(X)
    assert found.complete
    assert not brief(found)


def test_new_kernels_are_not():
    assert not brief(certified(lambda x: np.sin(x * 1.25) - np.cos(x), X))


@pytest.mark.parametrize(("verify", "strict"), [("always", False), (60.0, True)])
def test_who_asks_for_more_gets_more(verify, strict):
    certified(softmax, X)
    plans.clear()
    f = tn.jit(lambda x: softmax(x), verify=verify, strict=strict)
    f(X)
    assert not brief(f.certificate(X))


def test_loops_are_checked_with_what_they_run():
    def steps(x):
        return tn.fori_loop(0, 9, lambda i, c: np.cos(c) + x, x)

    certified(steps, X)
    found = certified(steps, X)
    assert brief(found)
    assert found.complete


def test_branches_are_checked_in_full():
    def either(x):
        return tn.cond(x.sum() > 0, lambda: np.sin(x) + 1, lambda: np.cos(x) * 2)

    certified(either, X)
    assert not brief(certified(either, X))


@pytest.mark.parametrize(
    "fault", [f for f in FAULTS if f.kind in faults.PLANS and f.kind != "number"], ids=str
)
def test_faults_in_plans_of_known_kernels_are_found(fault):
    certified(fault.function, *fault.arguments)
    plans.clear()
    with plant(fault.kind, fault.argument):
        f = tn.jit(fault.function)
        with pytest.warns(tn.ParityWarning, match="disagrees"):
            f(*fault.arguments)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_what_is_close(dtype):
    value = np.linspace(1, 1000, 50).astype(dtype)
    some = value.copy()
    some[7] *= 1 + 8 * np.finfo(dtype).eps
    assert closely(value, value.copy()) == 0
    assert closely(some, value) > 0
    for wrong in (np.nan, np.inf, value[7] + value[-1] / 64):
        some[7] = wrong
        assert closely(some, value) is None


def test_integers_are_close_when_they_are_equal():
    value = np.arange(1000, dtype=np.int32)
    other = value.copy()
    other[3] += 1
    assert closely(value, value.copy()) == 0
    assert closely(other, value) is None
    assert closely(value.astype(np.int64), value) is None


def test_what_is_not_finite_in_both_is_no_difference():
    value = np.array([np.nan, np.inf, -np.inf, 1, 2], np.float32)
    other = value.copy()
    assert closely(other, value) == 0
    other[4] = np.nextafter(other[4], np.float32(3))
    assert closely(other, value) == 1
    other[0] = 1
    assert closely(other, value) is None
