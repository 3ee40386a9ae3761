"""The row of constant_pow: a power whose exponent is known, a whole number or a half more.

Near 0 it is a few products, roots and quotients, which stay within the bound of pow: by the
mantissas of all that is rounded on the way, x**5 is off by at most 3.0 units in the last place, and
x**-2 by 1.9, where x**6 might be by 3.5. Of float32 such products in float64 are as good as exact.
All others are pow.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.op import Element, Op
from tenfold.ops import attributes as attribute
from tenfold.ops import rules, samples
from tenfold.ops.batching import rules as batching
from tenfold.ops.elements import Read, Site
from tenfold.ops.reference import Array, direct
from tenfold.ops.rows.elementwise import POW_BOUND, raised
from tenfold.types import SHORT, Shape

if TYPE_CHECKING:
    from tenfold.kernel import Builder

_NAME = "constant_pow"
_SHORT = (-4, -2, -1, 1, 3, 4, 5, 6, 8, 10)  # twice the exponents of few products
_LONGEST = 16  # the largest exponent of float32 that is multiplied out in float64


def _reference(x: Array, exponent: str) -> Any:
    return raised(x, np.asarray(float(exponent), x.dtype))


def _generate(site: Site) -> Generator[Read, int, int]:
    x = yield Read(0, site.position)
    kernel, short = site.kernel, SHORT[site.types[0].dtype]
    twice = int(2 * float(site.attributes["exponent"]))
    if twice in _SHORT:
        return _multiplied(kernel, short, x, twice)
    if short == "f32" and twice % 2 == 0 and 2 < abs(twice) <= 2 * _LONGEST:
        wide = _whole(kernel, "f64", kernel.cast(x, "f64"), abs(twice) // 2)
        if twice < 0:
            wide = kernel.op("div", "f64", kernel.const("f64", 1), wide)
        return kernel.cast(wide, short)
    return kernel.op("pow", short, x, kernel.literal(short, twice / 2))


def _multiplied(kernel: Builder, short: str, x: int, twice: int) -> int:
    one = kernel.const(short, 1)
    if twice % 2 == 0:
        if twice < 0:  # not the other way about: the power may overflow where this does not
            x = kernel.op("div", short, one, x)
        return _whole(kernel, short, x, abs(twice) // 2)
    x = kernel.op("add", short, x, kernel.const(short, 0))  # a negative zero gives what 0 does
    root = kernel.op("sqrt", short, x)
    if twice < 0:
        found, least = kernel.op("div", short, one, root), kernel.const(short, 0)
    else:
        found, least = root, kernel.const(short, np.inf)
        if twice > 1:
            found = kernel.op("mul", short, _whole(kernel, short, x, twice // 2), root)
    below = kernel.op("eq", "bool", x, kernel.const(short, -np.inf))
    return kernel.select(below, least, found)


def _whole(kernel: Builder, short: str, x: int, exponent: int) -> int:
    """A power by squaring, from the first bit of the exponent to the last."""
    made = x
    for bit in format(exponent, "b")[1:]:
        made = kernel.op("mul", short, made, made)
        if bit == "1":
            made = kernel.op("mul", short, made, x)
    return made


_SAMPLED = ("-0.5", "0.5", "1.5", "2.5", "3", "4", "5", "-2", "-3", "6", "12", "-16", "3.5", "17")
_FORMS: list[tuple[Sequence[Shape], Mapping[str, Any]]] = [
    ((shape,), {"exponent": exponent})
    for shape in (*samples.SHAPES, (40,))
    for exponent in _SAMPLED
]

ROWS = (
    Op(
        name=_NAME,
        arity=1,
        infer=rules.elementwise(_NAME, "w"),
        reference=direct(_reference),
        lowering=Element(_generate),
        edges="as pow: x**0 is 1, (-inf)**0.5 is inf",
        bound=POW_BOUND,
        batch=batching.elementwise(_NAME),
        samples=samples.listed(
            "w",
            *_FORMS,
        ),
        attributes=(attribute.text("exponent"),),
        elementwise=True,
    ),
)
