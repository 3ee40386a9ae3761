"""What the namespace says of itself."""

from __future__ import annotations

from typing import Any

from tenfold.api.namespace.dispatch import CPU, check_device
from tenfold.api.namespace.dtypes import NAMES, isdtype
from tenfold.types import DType

_EXTRA = ("float16", "bfloat16")  # not in the standard


class Info:
    """What arrays can do here."""

    def capabilities(self) -> dict[str, Any]:
        """What does not go without saying."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Where arrays are made."""
        return CPU

    def devices(self) -> list[str]:
        """Where arrays can be."""
        return [CPU]

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes that arrays get if none is named."""
        check_device(device)
        return {
            "real floating": NAMES["float64"],
            "complex floating": NAMES["complex128"],
            "integral": NAMES["int64"],
            "indexing": NAMES["int64"],
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The standard's dtypes, or those of some kinds."""
        check_device(device)
        found = {name: dtype for name, dtype in NAMES.items() if name not in _EXTRA}
        return {n: d for n, d in found.items() if kind is None or isdtype(d, kind)}


def __array_namespace_info__() -> Info:  # noqa: N807
    """What this namespace says of itself."""
    return Info()
