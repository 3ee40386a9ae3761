"""Where wgpu-native's library lies: in the wheel `wgpu`, which is not imported for it."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tenfold.errors import DeviceProblem

INSTALL = "pip install wgpu"
NAMES = ("libwgpu_native-release.so", "libwgpu_native-release.dylib", "wgpu_native-release.dll")


@cache
def library_path() -> Path:
    """The library; an error where it is not installed."""
    spec = find_spec("wgpu")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for name in NAMES:
            found = Path(folder, "resources", name)
            if found.is_file():
                return found
    raise DeviceProblem("wgpu-native is not installed", fix=INSTALL)
