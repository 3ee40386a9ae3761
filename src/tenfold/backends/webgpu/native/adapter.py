"""Adapters: the GPUs that Vulkan, Metal or Direct3D 12 find, and what each can do."""

from __future__ import annotations

from ctypes import addressof, byref, c_void_p
from typing import Any

from tenfold.backends.webgpu.native import structs as s
from tenfold.backends.webgpu.native.library import NO_ADAPTER, Handle, Library, library
from tenfold.backends.webgpu.target import D3D12, METAL, VULKAN
from tenfold.errors import DeviceProblem
from tenfold.locks import once

_APIS = {s.VULKAN: VULKAN, s.METAL: METAL, s.D3D12: D3D12}
_KINDS = {s.DISCRETE: "discrete", s.INTEGRATED: "integrated", s.CPU: "CPU"}
_PREFERRED = (s.DISCRETE, s.INTEGRATED, s.CPU)
FEATURES = {"f64": (s.F64,), "i64": (s.I64,), "f16": (s.F16,), "subgroups": (s.SUBGROUPS,)}


class Adapter:
    """A GPU as the library lists it."""

    def __init__(self, wgpu: Library, address: int) -> None:
        self.wgpu = wgpu
        self.handle = Handle(address, wgpu.AdapterRelease)
        info = s.AdapterInfo()
        wgpu.AdapterGetInfo(address, byref(info))
        self.name, self.driver = info.device.text, info.description.text
        self.api = _APIS.get(info.api, "")
        self.kind: int = info.kind
        wgpu.AdapterInfoFreeMembers(info)
        self.limits: Any = s.Limits()
        wgpu.AdapterGetLimits(address, byref(self.limits))
        self.features = {
            name: [f for f in numbers if wgpu.AdapterHasFeature(address, f) & 255]
            for name, numbers in FEATURES.items()
        }

    @property
    def kind_name(self) -> str:
        return _KINDS.get(self.kind, "unknown")


@once
def _instance(wgpu: Library) -> int:
    """The instance, without what would look at groups that a shader has written: gates write none
    that is too large."""
    extras = s.InstanceExtras(s.Chain(None, s.INSTANCE_EXTRAS), s.BACKENDS, 0)
    descriptor = s.InstanceDescriptor(addressof(extras))
    made: int = wgpu.CreateInstance(byref(descriptor))
    return made


@once
def _listed(wgpu: Library) -> tuple[Adapter, ...]:
    """All, the best first; it lives as long as the process."""
    options, instance = s.EnumerateOptions(None, s.BACKENDS), _instance(wgpu)
    count = wgpu.InstanceEnumerateAdapters(instance, byref(options), None)
    rows = (c_void_p * count)()
    wgpu.InstanceEnumerateAdapters(instance, byref(options), rows)
    found = [Adapter(wgpu, address) for address in rows if address]
    fit = [one for one in found if one.api]
    order = {kind: n for n, kind in enumerate(_PREFERRED)}
    return tuple(sorted(fit, key=lambda one: order.get(one.kind, len(order))))


def adapters() -> tuple[Adapter, ...]:
    """The GPUs of this machine, the best first."""
    return _listed(library())


def adapter_of(number: int = 0) -> Adapter:
    """A GPU by its number; an error says what is missing."""
    found = adapters()
    if not found:
        raise DeviceProblem("no Vulkan, Metal or Direct3D 12 adapter", fix=NO_ADAPTER)
    if number >= len(found):
        listed = ", ".join(f"{n} ({one.name})" for n, one in enumerate(found))
        raise DeviceProblem(f"there is no adapter {number}", fix=f"there are: {listed}")
    return found[number]
