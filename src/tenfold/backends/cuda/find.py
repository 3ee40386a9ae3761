"""What of CUDA lies on this machine beside the driver: looked for, never demanded.

A toolkit, NVIDIA's own wheels, or what Triton and torch bring along will do. Nothing is imported
for it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import cache
from glob import glob
from importlib.machinery import PathFinder

_TOOLKITS = ("CUDA_HOME", "CUDA_PATH")


def _toolkits() -> Iterator[str]:
    """The folders of toolkits, those that the environment names first, then the newest."""
    yield from (found for name in _TOOLKITS if (found := os.environ.get(name)))
    yield from sorted(glob("/usr/local/cuda*"), reverse=True)


def _packages(name: str) -> list[str]:
    """The folders of a Python package that is not imported for it."""
    spec = PathFinder.find_spec(name)
    return list(spec.submodule_search_locations or ()) if spec else []


@cache
def find_ptxas() -> str | None:
    """NVIDIA's assembler, or None."""
    found = shutil.which("ptxas")
    if found:
        return found
    places = [os.path.join(folder, "bin") for folder in _toolkits()]
    for folder in _packages("nvidia"):  # its wheels: nvidia/cu13, nvidia/cuda_nvcc
        places += sorted(glob(os.path.join(folder, "*", "bin")), reverse=True)
    places += [os.path.join(f, "backends", "nvidia", "bin") for f in _packages("triton")]
    files = (os.path.join(place, "ptxas") for place in places)
    return next((file for file in files if os.access(file, os.X_OK)), None)


@cache
def find_shared(name: str) -> str | None:
    """A library of CUDA's by its name ('cublasLt'): its file, or None."""
    places = [os.path.join(f, part) for f in _toolkits() for part in ("lib64", "lib")]
    for folder in _packages("nvidia"):
        places += sorted(glob(os.path.join(folder, "*", "lib")), reverse=True)
    places += [os.path.join(folder, "lib") for folder in _packages("torch")]
    for place in places:
        found = sorted(glob(os.path.join(place, f"lib{name}.so.[0-9]*")))
        if found:
            return found[-1]
    from ctypes.util import find_library

    return find_library(name)
