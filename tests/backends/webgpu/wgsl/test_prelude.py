"""Functions of the prelude, on bits that only some drivers make.

Quotients and roots are for drivers whose fma rounds once. Lavapipe's does not: here it is had from
f64, where a product of two f32 is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tenfold.backends.webgpu.native import structs as s
from tenfold.backends.webgpu.native.commands import Commands
from tenfold.backends.webgpu.wgsl.prelude import helpers
from tests.backends.webgpu.beside import adapter
from tests.backends.webgpu.here import needs_adapter

pytestmark = needs_adapter
Array = np.ndarray[Any, Any]

TEXT = """
@group(0) @binding(0) var<storage, read_write> given: array<{ty}>;
@group(0) @binding(1) var<storage, read_write> other: array<{ty}>;
@group(0) @binding(2) var<uniform> Z: vec4<u32>;
fn fused(a: f32, b: f32, c: f32) -> f32 {{ return f32(f64(a) * f64(b) + f64(c)); }}
{functions}
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) me: vec3<u32>) {{
    let i = me.x + me.y * 65535u * 64u;
    if (i < arrayLength(&given)) {{ let a = given[i]; let b = other[i]; given[i] = {call}; }}
}}
"""
KINDS = (s.STORAGE_BINDING, s.STORAGE_BINDING, s.UNIFORM_BINDING)


def called(call: str, given: Array, other: Array, off: int = 0) -> Array:
    """What an expression of `a` and `b` gives, for elements of two arrays of one dtype, where the
    driver's own quotients and roots are so many units off."""
    device = adapter().device
    functions = "\n".join(helpers([call])).replace("fma(", "fused(")
    for own, by in (("(x / y)", off), ("(1.0 / y)", off // 2), (" sqrt(y)", off // 2)):
        functions = functions.replace(own, f"(bitcast<f32>(bitcast<u32>({own}) + {by % 2**32}u))")
    ty = {"f": "f32", "u": "u32"}[given.dtype.kind]
    module = device.shader(TEXT.format(functions=functions, call=call, ty=ty))
    places = [device.range(a.nbytes) for a in (given, other)]
    for place, array in zip(places, (given, other), strict=True):
        device.write(place, array)
    group = device.bind_group(KINDS, [*places, device.range(16, s.UNIFORM | s.COPY_TARGET)])
    staging, commands = device.buffer(given.nbytes, s.MAP_READ | s.COPY_TARGET), Commands(device)
    commands.dispatch(device.pipeline(module, KINDS), group, (-(-given.size // 64), 1, 1))
    commands.copy(places[0], staging, 0)
    commands.submit()
    made = np.empty_like(given)
    device.read(staging, [(0, made)])
    return made


def operands() -> Iterator[tuple[Array, Array]]:
    """Edges with edges; any bits; what is near one; quotients that lie between two floats."""
    rng, count = np.random.default_rng(0), 1 << 15
    with np.errstate(all="ignore"):
        ends = np.array([0, 1, 2, 3, np.inf, np.nan, 2.0**97, 2.0**98, 2.0**126, 2.0**127], "f4")
        ends = np.concatenate([ends, 1 / ends[1:], [np.finfo("f4").max, 1e-40]]).astype("f4")
        near = [np.nextafter(ends, np.float32(x)) for x in (np.inf, -np.inf)]
        edges = np.concatenate([ends, *near])
        edges = np.concatenate([edges, -edges])
        a, b = (x.reshape(-1).copy() for x in np.meshgrid(edges, edges))
        yield a, b
        a, b = rng.integers(0, 1 << 32, (2, count), dtype="u8").astype("u4").view("f4")
        yield a, b
        digits = rng.integers(0, 1 << 23, (2, count)).astype("u4") | 0x3F800000
        a, b = digits.view("f4")
        yield a, b
        between = (rng.integers(0, 1 << 23, count) + 0.5) / (1 << 23) + 1
        for size in 2.0 ** np.array([-100, -60, 0, 60, 100]):
            wide = (between * b * size).astype("f4")
            yield wide, (b * size * 2.0 ** rng.integers(-20, 20, count)).astype("f4")
            yield (between * between * size).astype("f4"), b


def same(got: Array, want: Array) -> Array:
    return (got.view("u4") == want.view("u4")) | (np.isnan(got) & np.isnan(want))


@pytest.mark.parametrize(
    ("call", "wanted"),
    [("div32(a, b)", lambda a, b: a / b), ("sqrt32(a)", lambda a, b: np.sqrt(a))],
)
@pytest.mark.parametrize("off", [0, 2, -2])
def test_quotients_and_roots_are_the_nearest(call: str, wanted: Any, off: int) -> None:
    if not adapter().target.f64:
        pytest.skip("this adapter has no f64, nor an fma that rounds once")
    for a, b in operands():
        with np.errstate(all="ignore"):
            want = wanted(a, b)
        wrong = ~same(called(call, a, b, off), want)
        assert not wrong.any(), [(x, y) for x, y in zip(a[wrong], b[wrong], strict=True)][:5]


def test_a_huge_divisor_of_infinity() -> None:
    """As where a driver's own quotient is a product with an inverse, which is 0 here."""
    (divide,) = (text for text in helpers(["div32("]) if "fn div32" in text)
    assert divide.count("a / b") == 1
    assert divide.index("ea == 255") < divide.index("a / b")


@pytest.mark.parametrize("name", ["to_half", "to_bfloat"])
def test_nan_of_any_bits_stays_one(name: str) -> None:
    """Some processors make NaNs whose bits are all ones."""
    bits = np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0xFF808000, 0x7FC00000, 0x7F80FFFF], "u4")
    got = called(f"{name}(bitcast<f32>(a))", bits, bits)
    infinity = {"to_half": 0x7C00, "to_bfloat": 0x7F80}[name]
    assert ((got & 0x7FFF) > infinity).all(), [hex(x) for x in got]
    assert (got < 1 << 16).all()
