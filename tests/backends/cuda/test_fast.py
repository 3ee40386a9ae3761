"""A chip's own exp and tanh, on a simulated GPU whose tables give the nearest float: within the
bounds of the op table, with every edge, and for nothing but these two functions of f32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.backends.cuda.compile import module_text, prepare, to_ptx
from tenfold.backends.cuda.target import named
from tenfold.backends.llvm.target import llvmlite_version
from tenfold.errors import ValueProblem
from tenfold.kernel.passes.generalise import generalise
from tenfold.ops import TABLE
from tests.backends.cpu.running import mapped
from tests.backends.cpu.test_kernels import softmax
from tests.backends.cuda.beside import GPU, equal, launched
from tests.backends.cuda.test_compile import assembled

FAST = named("sm_90+fast", llvmlite_version())
Array = np.ndarray[Any, Any]


def computed(name: str, x: Array) -> Array:
    out = np.empty_like(x)
    launched(mapped(name, "f32", "f32", 1, x.shape), [x, out], target=FAST)
    return out


def off(got: Array, true: Array) -> float:
    """The largest error, in units of the last place of true results."""
    with np.errstate(all="ignore"):
        unit = np.spacing(np.abs(true.astype(np.float32)))
        ended = np.isinf(true.astype(np.float32))
    assert np.isposinf(got[ended]).all()
    apart = np.abs(got[~ended].astype(np.longdouble) - true[~ended]) / unit[~ended]
    return float(apart.max())


@pytest.mark.parametrize("name", ["exp", "tanh"])
def test_within_the_bound(name: str) -> None:
    """Numbers of every size, and closely where results overflow and fade."""
    sizes = np.arange(0, 0x7F800000, 40009, np.uint32).view(np.float32)
    lines = [
        np.linspace(a, b, 20000, dtype=np.float32) for a, b in ((-104, -86), (0, 10), (86, 90))
    ]
    x = np.concatenate([sizes, -sizes, *lines])
    with np.errstate(all="ignore"):
        true = getattr(np, name)(x.astype(np.longdouble))
    bound = TABLE[name].bound
    assert bound == 4
    assert off(computed(name, x), true) < 2.5


def test_edges() -> None:
    x = np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45, 200, -200], np.float32
    )
    one, none = np.float32(1), np.float32(0)
    got = computed("exp", x)
    assert equal(got, np.array([1, 1, np.inf, 0, np.nan, np.nan, 1, 1, np.inf, 0], np.float32))
    tiny = np.float32(1e-45)
    want = [none, -none, one, -one, np.nan, np.nan, tiny, -tiny, one, -one]
    assert equal(computed("tanh", x), np.array(want, np.float32))


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "log", "exp2", "sinh", "pow"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
def test_nothing_else_is_other_than_the_cpus(name: str, dtype: str) -> None:
    kernel = generalise(mapped(name, dtype, dtype, 2 if name == "pow" else 1, (50,)))
    texts = [module_text([prepare(kernel, t)[0]], t) for t in (GPU, FAST)]
    changed = name in ("exp", "tanh") and dtype != "f64"
    assert ("approx" in texts[1]) == changed
    assert (texts[0] != texts[1]) == changed
    assert "approx" not in texts[0]


def test_softmax_agrees() -> None:
    x = np.random.default_rng(1).standard_normal((6, 300)).astype(np.float32)
    out = np.empty_like(x)
    done = launched(softmax(6, 300, 1), [x, out], target=FAST)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-6)
    ptx = to_ptx(done.text, FAST)
    assert "ex2.approx.ftz.f32" in ptx
    assembled(ptx, FAST)


def test_they_are_targets_of_their_own() -> None:
    assert FAST.name == "sm_90+fast"
    assert FAST != GPU
    assert FAST.digest != GPU.digest
    assert named("sm_90").maths == "exact"
    with pytest.raises(ValueProblem, match="'quick'"):
        named("sm_90", maths="quick")
