"""What no list of features says of an adapter: small shaders are run to see how it computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.backends.webgpu.native import structs as s
from tenfold.backends.webgpu.native.adapter import Adapter, adapter_of
from tenfold.backends.webgpu.native.commands import Commands
from tenfold.backends.webgpu.native.device import Device
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.frozen import frozen
from tenfold.locks import once

Array = np.ndarray[Any, Any]

_ROUNDS = 70_000  # more than the loops of an invocation may run on some adapters
_HEAD = "@group(0) @binding(0) var<storage, read_write> a: array<{}>;\n"
_MAIN = "@compute @workgroup_size(1)\nfn main({}) {{\n{}\n}}\n"

# (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 where the product is not rounded. Subnormal numbers are
# added, and made of normal ones.
_FLOATS = _HEAD.format("f32") + _MAIN.format(
    "",
    """    a[0] = fma(a[0], a[0], a[1]);
    a[1] = a[2] + a[3];
    a[2] = a[4] * a[5];""",
)
_LOOP = _HEAD.format("u32") + _MAIN.format(
    "",
    """    var rounds = 0u;
    var x = a[1];
    for (var i = 0u; i < a[0]; i++) { x = x * 1664525u + 1013904223u; rounds++; }
    a[0] = rounds;
    a[1] = x;""",
)
_LANES = _HEAD.format("u32") + _MAIN.format(
    "@builtin(subgroup_size) lanes: u32", "    a[0] = lanes;"
)
_TRUNC = _HEAD.format("f64") + _MAIN.format(
    "", "    for (var i = 0u; i < 4u; i++) { a[4u + i] = round(a[i]); a[i] = trunc(a[i]); }"
)


@frozen(eq=False)
class Opened:
    """A device, and what code is made for on it."""

    device: Device
    target: WebGPUTarget


def opened(number: int = 0) -> Opened:
    """An adapter by its number, open: the same one each time, whichever thread asks first."""
    return _opened(number)


@once
def _opened(number: int) -> Opened:
    device = Device(adapter_of(number), number)
    return Opened(device, target_of(device))


def target_of(device: Device) -> WebGPUTarget:
    """What code is made for on a device."""
    adapter, limits = device.adapter, device.adapter.limits
    has = {name: bool(found) for name, found in adapter.features.items()}
    return WebGPUTarget(
        adapter=adapter.name,
        driver=adapter.driver,
        api=adapter.api,
        library=device.wgpu.version,
        **has,
        workgroup_invocations=limits.workgroup_invocations,
        workgroup_width=min(limits.workgroup_x, limits.workgroup_y),
        workgroup_depth=limits.workgroup_z,
        workgroup_bytes=limits.workgroup_bytes,
        groups=limits.groups,
        storage_buffers=limits.storage_buffers,
        storage_bytes=limits.storage_bytes,
        buffer_bytes=limits.buffer_bytes,
        alignment=limits.storage_alignment,
        **_answers(device, adapter),
    )


def _answers(device: Device, adapter: Adapter) -> dict[str, Any]:
    x = np.float32(1 + 2**-12)
    tiny = np.array([3, 5], np.uint32).view(np.float32)
    least = np.finfo(np.float32).tiny
    given = np.array([x, -(1 + 2**-11), *tiny, least, 0.5], np.float32)
    fused, added, halved = _run(device, _FLOATS, given)[:3]
    rounds = int(_run(device, _LOOP, np.array([_ROUNDS, 1], np.uint32))[0])
    sum_bits, half_bits = np.array([added, halved], np.float32).view(np.uint32)
    return {
        "fma": bool(fused == 2.0**-24),
        "subnormals": bool(sum_bits == 8 and half_bits == 1 << 22),
        "loop_limit": rounds if rounds < _ROUNDS else 0,
        "lanes": _lanes(device) if adapter.features["subgroups"] else 1,
        "f64_trunc": bool(adapter.features["f64"]) and _truncates(device),
    }


def _lanes(device: Device) -> int:
    return int(_run(device, _LANES, np.zeros(1, np.uint32))[0])


def _truncates(device: Device) -> bool:
    given = np.array([2.0**40 + 0.75, -(2.0**51) - 0.5, 1e300, -2.5], np.float64)
    found = _run(device, _TRUNC, np.concatenate([given, given]))
    return bool(np.array_equal(found, np.concatenate([np.trunc(given), np.round(given)])))


def _run(device: Device, text: str, given: Array) -> Array:
    """An array that a shader has changed."""
    kinds = (s.STORAGE_BINDING,)
    pipeline = device.pipeline(device.shader(text), kinds)
    memory = device.range(given.nbytes)
    staging = device.buffer(given.nbytes, s.MAP_READ | s.COPY_TARGET)
    device.write(memory, given)
    commands = Commands(device)
    commands.dispatch(pipeline, device.bind_group(kinds, [memory]), (1, 1, 1))
    commands.copy(memory, staging, 0)
    commands.submit()
    made = np.empty_like(given)
    device.read(staging, [(0, made)])
    return made
