"""The records of the WebGPU backend: what is found by name, and what is said where nothing is."""

from __future__ import annotations

from importlib import util

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.registry import backend_named, backend_record
from tenfold.backends.webgpu.native import adapter, find
from tenfold.errors import Unsupported
from tests.backends.webgpu.here import needs_adapter
from tests.backends.webgpu.native.fresh import load_anew


@pytest.fixture
def none_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without wgpu-native."""
    real = util.find_spec
    monkeypatch.setattr(find, "find_spec", lambda name: None if name == "wgpu" else real(name))
    load_anew(monkeypatch)


def test_without_the_library(none_installed: None) -> None:
    with pytest.raises(Unsupported, match="wgpu-native is not installed") as error:
        tn.jit(lambda x: x, backend="webgpu")
    assert "pip install wgpu" in str(error.value)
    said = tn.backends()["webgpu"]
    assert said["missing"] == "wgpu-native is not installed"
    assert said["remedy"] == "pip install wgpu"


def test_without_an_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "adapters", lambda: ())
    f = tn.jit(lambda x: x, backend="webgpu")  # which loads nothing yet
    with pytest.raises(Unsupported, match="no Vulkan, Metal or Direct3D 12 adapter") as error:
        f(np.ones(3))
    assert "apt-get install mesa-vulkan-drivers libvulkan1" in str(error.value)


@needs_adapter
def test_adapters_by_number() -> None:
    assert backend_named("webgpu:0") is backend_named("webgpu")
    assert backend_record("webgpu:7").name == "webgpu:7"
    assert backend_record("webgpu:7").kept_as == "webgpu"
    with pytest.raises(Unsupported, match="there is no adapter 7"):
        backend_named("webgpu:7")
    with pytest.raises(Unsupported, match="there is no adapter 'metal'"):
        backend_named("webgpu:metal")
    with pytest.raises(Unsupported, match="functions keep no bound"):
        backend_named("webgpu+fast")


@needs_adapter
def test_what_is_said_of_it() -> None:
    said = tn.backends()["webgpu"]
    assert {"target", "features", "computes", "memory", "adapters"} <= said.keys()
    plan = tn.jit(lambda x: np.tanh(x) + 1, backend="webgpu").plan(tn.spec((40, 3), "float32"))
    assert f"for {backend_record('webgpu').target()}" in plan.explain()
