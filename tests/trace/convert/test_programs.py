"""Converted functions give what Python gives."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tests.trace.convert.programs import PROGRAMS


def check(found, wanted):
    assert type(found) is type(wanted) or np.ndim(found) == np.ndim(wanted)
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            check(a, b)
    elif isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key in wanted:
            check(found[key], wanted[key])
    elif wanted is None:
        assert found is None
    else:
        assert np.shape(found) == np.shape(wanted)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("compile", ["never", "now"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_python_gives(name, compile):
    function, calls = PROGRAMS[name]
    jitted = tn.jit(function, control="convert", compile=compile)
    plain = tn.convert_control(function)
    for args in calls:
        wanted = function(*args)
        check(plain(*args), wanted)
        check(jitted(*args), wanted)
    kinds = {tuple((type(a), np.shape(a), np.asarray(a).dtype) for a in args) for args in calls}
    assert jitted.traces == len(kinds)  # never one for a value
