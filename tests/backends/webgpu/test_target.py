"""What WGSL is made for: names, keys, and what shaders find out."""

from __future__ import annotations

from dataclasses import fields, replace

from tenfold.backends.webgpu.probe import opened
from tenfold.backends.webgpu.target import METAL, WebGPUTarget
from tests.backends.webgpu.here import needs_adapter


def test_names_and_keys() -> None:
    target = WebGPUTarget(adapter="Apple M2 Pro", api=METAL, library="29.0.1.1", driver="none")
    assert target.name == "metal-apple-m2-pro"
    assert str(target) == "Apple M2 Pro, none, by metal and wgpu-native 29.0.1.1"
    assert dict(target.versions) == {"wgpu-native": "29.0.1.1", "driver": "none"}
    digests = {target.digest}
    for field in fields(target):
        old = getattr(target, field.name)
        new = not old if isinstance(old, bool) else old * 2 + (1 if isinstance(old, int) else "x")
        digests.add(replace(target, **{field.name: new}).digest)
    assert len(digests) == len(fields(target)) + 1


@needs_adapter
def test_what_shaders_find_out() -> None:
    target = opened().target
    assert target.lanes >= 1
    assert target.storage_buffers >= 8
    assert target.alignment % 4 == 0
    assert target.loop_limit in (0, 65535)
    if target.adapter.startswith("llvmpipe"):
        assert (target.fma, target.subnormals) == (False, True)
        assert target.loop_limit == 65535
