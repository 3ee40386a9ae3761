"""What WGSL is made for: an adapter with its driver, what both can do, and how they compute."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields

from tenfold.digest import sha256
from tenfold.frozen import frozen

VULKAN, METAL, D3D12 = "vulkan", "metal", "d3d12"  # ways to a GPU
OTHERS = 4  # bindings of a shader that are no arrays of its kernel: faults, words, zeros, scratch


@frozen
class WebGPUTarget:
    """An adapter and how code is made for it. The defaults are what WebGPU promises everywhere.

    >>> target = WebGPUTarget(adapter="llvmpipe (LLVM 15.0.6, 256 bits)", api=VULKAN)
    >>> target.name, target.f64, target.storage_bytes
    ('vulkan-llvmpipe-llvm-15.0.6-256-bits', False, 134217728)
    """

    adapter: str = "any"  # its name
    driver: str = ""  # its name and version
    api: str = VULKAN  # how it is reached
    library: str = ""  # the version of wgpu-native

    # Optional features.
    f64: bool = False
    i64: bool = False
    f16: bool = False
    subgroups: bool = False

    # Limits.
    workgroup_invocations: int = 256
    workgroup_width: int = 256  # invocations along the first two dimensions
    workgroup_depth: int = 64  # and along the third
    workgroup_bytes: int = 16384  # of memory that a workgroup shares
    groups: int = 65535  # in each dimension of a dispatch
    storage_buffers: int = 8  # that a shader binds
    storage_bytes: int = 128 << 20  # that one of them shows
    buffer_bytes: int = 256 << 20  # of a buffer
    alignment: int = 256  # of the places in a buffer where one may begin to be bound

    # What shaders were asked, since no list says it.
    fma: bool = False  # whether `fma` rounds once
    subnormals: bool = True  # whether arithmetic of f32 keeps subnormal numbers
    lanes: int = 1  # of a subgroup
    loop_limit: int = 0  # rounds after which loops of an invocation end silently; 0 for none
    f64_trunc: bool = False  # whether `trunc` and `round` of f64 are right

    @property
    def name(self) -> str:
        """What users call it."""
        words = re.findall(r"[a-z0-9.]+", self.adapter.lower())
        return "-".join([self.api, *words])

    @property
    def arrays(self) -> int:
        """How many a kernel touches at most."""
        return self.storage_buffers - OTHERS

    @property
    def digest(self) -> str:
        """The part of a cache key that stands for the adapter, its driver and its library."""
        every = [(f.name, getattr(self, f.name)) for f in fields(self)]
        return sha256(repr(every).encode()).hexdigest()[:32]

    @property
    def versions(self) -> Mapping[str, str]:
        return {"wgpu-native": self.library, "driver": self.driver}

    @property
    def rank(self) -> int:
        """There is one adapter's code alone, so none is the better."""
        return 0

    def __str__(self) -> str:
        return f"{self.adapter}, {self.driver}, by {self.api} and wgpu-native {self.library}"
