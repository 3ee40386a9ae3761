"""Kernels: what a code generator sees, and the builder that makes them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenfold.kernel.ir.build import Builder
    from tenfold.kernel.ir.index import Index
    from tenfold.kernel.ir.kernel import (
        Axis,
        Buffer,
        Check,
        Fold,
        Instruction,
        Kernel,
        Store,
        from_data,
        stages,
        to_data,
        verify,
    )
    from tenfold.kernel.ir.text import show

# Names are loaded when they are first used: `import tenfold` needs none of them.
_HOMES = {"Builder": "build", "Index": "index", "show": "text"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"tenfold.kernel has no {name!r}")
    return getattr(import_module(f"tenfold.kernel.ir.{_HOMES.get(name, 'kernel')}"), name)


__all__ = [
    "Axis",
    "Buffer",
    "Builder",
    "Check",
    "Fold",
    "Index",
    "Instruction",
    "Kernel",
    "Store",
    "from_data",
    "show",
    "stages",
    "to_data",
    "verify",
]
