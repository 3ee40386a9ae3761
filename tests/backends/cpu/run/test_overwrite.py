"""Which updates are written over arguments, and which need a copy."""

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.run.native import NativeProgram

A, B = np.linspace(-2.0, 3.0, 50), np.arange(50.0)


def add(a, b):
    a += b


def middle(a, b):
    a[1:-1] = b[:-2] + b[2:]


def alternate(a, b):
    a[1:-1] = b[:-2] + b[2:]
    b[1:-1] = a[:-2] + a[2:]


def own_stencil(a, b):
    a[1:-1] = a[:-2] + a[2:]


def reverse(a, b):
    a[...] = a[::-1] + 0.5


def old_is_wanted(a, b):
    old = np.sort(a)
    a += b
    return a[::-1] + old[::-1]


def checked(a, b):
    i = b.astype(int)
    a[...] = a[i] + 1


def checked_after(a, b):
    a += 1
    return a[b.astype(int)]


def host_after(a, b):
    a += 1
    return tn.call_host(lambda x: x, tn.spec((), "float64"), b[0])


def swapped(a, b):
    a[...], b[...] = b + 0, a + 0


def overwritten(function, *arrays, **options):
    """The arguments that are written over, of those that are updated."""
    plan = tn.jit(function, **options).plan(*arrays)
    updates = plan.signature.updates
    first = len(plan.program.outputs) - len(updates)
    return [n for o, n in enumerate(updates, first) if plan.program.overwrites(n, o)]


@pytest.mark.parametrize(
    ("function", "wanted"),
    [(add, [0]), (middle, [0]), (alternate, [0, 1]), (own_stencil, None), (reverse, []),
     (old_is_wanted, None), (checked, []), (checked_after, []), (host_after, []), (swapped, None)],
)  # fmt: skip
def test_what_is_written_over(function, wanted):
    if wanted is not None:
        assert overwritten(function, A, B) == wanted
    b = np.clip(B, 0, 49)
    given, mine = [A.copy(), b.copy()], [A.copy(), b.copy()]
    jitted = tn.jit(function)
    if function is not host_after:
        for _ in range(4):
            got, want = jitted(*given), function(*mine)
            np.testing.assert_allclose(given, mine, rtol=1e-12)
            if want is not None:
                np.testing.assert_allclose(got, want, rtol=1e-12)
            given[1][:], mine[1][:] = b, b


def test_donated_arguments_are_written_over_whatever_may_fail():
    assert overwritten(checked_after, A, B) == []
    assert overwritten(checked_after, A, B, donate="a") == [0]


def test_long_kernels_that_may_be_stopped_write_elsewhere():
    def heavy(a):
        for _ in range(40):
            a[...] = np.sin(a) * 1.5

    assert overwritten(lambda a: a.__iadd__(1), tn.spec((1 << 21,), "float64")) == [0]
    assert overwritten(heavy, tn.spec((1 << 21,), "float64")) == []


def test_a_loaded_plan_writes_over_the_same(tmp_path):
    plan = tn.jit(alternate).plan(A, B)
    plan.save(tmp_path / "f.plan")
    program = tn.load(tmp_path / "f.plan", trust_code=True).program
    assert program.order == plan.program.order


def test_what_is_written_over_too_early_is_found(monkeypatch):
    """Were the order of steps taken wrongly, the first call would say so."""
    monkeypatch.setattr(NativeProgram, "overwrites", lambda self, argument, output: True)
    a = np.arange(5000.0)
    f = tn.jit(lambda a: a.__setitem__(slice(None), a[::-1] + 0.5))
    with pytest.warns(tn.ParityWarning, match="written over arguments"):
        f(a)
    np.testing.assert_array_equal(a, np.arange(5000.0)[::-1] + 0.5)
    f(a)
    np.testing.assert_array_equal(a, np.arange(5000.0) + 1)
