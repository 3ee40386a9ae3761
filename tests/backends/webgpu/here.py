"""Whether there is an adapter to try things on; lavapipe is one."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("XDG_RUNTIME_DIR", "/tmp")  # Mesa says so where it is missing

from tenfold.backends.registry import backend_record

REMEDY = "no Vulkan adapter: apt-get install mesa-vulkan-drivers libvulkan1, pip install wgpu"
MISSING = backend_record("webgpu").missing()
needs_adapter = pytest.mark.skipif(MISSING is not None, reason=REMEDY)
