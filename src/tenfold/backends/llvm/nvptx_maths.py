"""NVIDIA's own instructions for exp and tanh: sooner, within the bounds of the op table, and with
bits of their own. The others stay as they are everywhere.

Over all floats exp errs by 2.07 ulp and tanh by 1.82 on an H200.
"""

from __future__ import annotations

import math

from tenfold.backends.llvm.writer import Writer
from tenfold.kernel.maths import Own
from tenfold.kernel.maths.coefficients import TABLE
from tenfold.kernel.maths.values import FORMATS, Value, poly

# The instructions, as LLVM calls them. Those by tables flush subnormals to zero.
PRINTED = {
    "ex2": "llvm.nvvm.ex2.approx.ftz.f32",
    "rcp": "llvm.nvvm.rcp.approx.ftz.f",
    "least": "llvm.minimum.f32",  # NaN stays
    "most": "llvm.maximum.f32",
}
_MAGIC = FORMATS["f32"].magic
_MOST = 126.0  # the exponent of a power of two that is a normal number, as is its reciprocal
_LOG2E = float.fromhex("0x1.715476p+0")  # as a float, and what it lacks
_REST = math.log2(math.e) - _LOG2E


def _native(op: str, *args: Value) -> Value:
    return args[0].body.write(op, args[0].dtype, *args)


def exp(x: Value) -> Value:
    """2**n · 2**g, where n is as much of x log2 e as a normal number has room for: what lies
    beyond stays in g, so that one product rounds what is subnormal, or overflows."""
    near = x.fma(_LOG2E, _MAGIC) - _MAGIC
    n = _native("most", _native("least", near, x.like(_MOST)), x.like(-_MOST))
    g = x.fma(_REST, x.fma(_LOG2E, -n))
    power = ((n + (_MAGIC + FORMATS["f32"].bias)).bits() << FORMATS["f32"].mantissa).floats()
    return _native("ex2", g) * power


def tanh(x: Value) -> Value:
    """The polynomial up to 5/8, 1 - 2 / (exp(2|x|) + 1) beyond: there no bit of exp counts."""
    a, z = abs(x), x * x
    below = _native("ex2", a * (2 * _LOG2E)) + 1.0
    far = 1.0 - _native("rcp", below) * 2.0
    near = poly(z, TABLE["tanh", x.dtype]).fma(a * z, a)
    return a.lt(0.625).where(near, far).copysign(x)


_OWN = {("exp", "f32"): exp, ("tanh", "f32"): tanh}


def own(name: str, dtype: str) -> Own:
    """What stands in place of a function, where it is called by its name."""
    found = _OWN.get((name, dtype))
    return () if found is None else ((name, found),)


def printed(w: Writer, op: str, args: list[str]) -> str:
    """One of the chip's own instructions, on floats."""
    return w.call("float", PRINTED[op], *(("float", a) for a in args))
