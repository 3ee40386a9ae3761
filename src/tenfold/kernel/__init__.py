"""Kernels: what a code generator sees, and the builder that makes them."""

from tenfold.kernel.build import Builder
from tenfold.kernel.index import Index
from tenfold.kernel.kernel import (
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
from tenfold.kernel.text import show

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
