"""Programs as users write them give under `tn.jit` what NumPy gives, and are never refused."""

import warnings

import numpy as np
import pytest
import wild.learning
import wild.signals
import wild.simulation  # noqa: F401
from wild.wild import PROGRAMS

import tenfold as tn


def leaves(value):
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in leaves(part)]
    return [np.asarray(value)]


def assert_same(found, expected):
    found, expected = leaves(found), leaves(expected)
    assert [(a.dtype, a.shape) for a in found] == [(a.dtype, a.shape) for a in expected]
    for one, other in zip(found, expected, strict=True):
        if other.dtype.kind in "fc":
            single = other.dtype in (np.float32, np.complex64)
            scale = np.abs(other[np.isfinite(other)]).max(initial=0.0)
            tolerance = 1e-4 if single else 1e-9
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)
        else:
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_as_users_write_them(name):
    """On the values it was checked on, and on others, which the plan alone answers."""
    program = PROGRAMS[name]
    jitted = tn.jit(program.function, static=program.static)
    for seed in (1, 2):
        inputs = program.draw(np.random.default_rng(seed))
        given = [np.array(a) if isinstance(a, np.ndarray) else a for a in inputs]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's own, of logarithms of 0 and the like
            expected = program.function(*inputs)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = jitted(*given)
        assert_same(found, expected)
        assert_same(given, inputs)
    assert jitted.traces == 1
    assert jitted.certificate(*given) is not None


def test_a_random_walk_of_many_lanes():
    """Numbers drawn in the program are the evaluator's, bit for bit."""

    def asian_option(key, spot):
        shocks = tn.random.normal(key, (200, 20))
        paths = spot * np.exp(np.cumsum(0.02 * shocks - 0.0002, axis=1))
        return np.maximum(paths.mean(axis=1) - spot, 0).mean(), tn.random.bits(key, (7,))

    key = tn.random.key(3)
    price, bits = tn.jit(asian_option)(key, 100.0)
    expected, same = tn.jit(asian_option, compile="never")(key, 100.0)
    np.testing.assert_allclose(price, expected, rtol=1e-6)
    np.testing.assert_array_equal(bits, same)
    assert 0.5 < price < 10
