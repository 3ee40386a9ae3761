"""The table itself: rows by name, imported module by module until the one asked for is there.

Most programs ask for a few plain ops, and the modules that have these come first. A process that
runs a plan from the disk asks for the rows of what it traces, and for no more.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

from tenfold.graph.op import Op, Table
from tenfold.late import Late

# The modules with rows, the most common first.
_MODULES = (
    "rows.elementwise",
    "rows.constants",
    "rows.shapes",
    "rows.reductions",
    "rows.casts",
    "rows.comparing",
    "rows.choosing",
    "rows.indexing",
    "algebra.linalg",
    "rows.control",
    "rows.sorting",
    "rows.searching",
    "rows.cumulative",
    "rows.effects",
    "numbers.special",
    "numbers.divisors",
    "numbers.powers",
    "numbers.threefry",
    "algebra.windows",
    "algebra.convolution",
    "algebra.solving",
    "algebra.fourier",
    "rows.reaching",
)


class _Rows(Late[str, Op]):
    """Rows by name. Modules are imported in one order, which is the order of the rows."""

    def bring(self, key: Any) -> None:
        for module in _MODULES:
            for op in import_module(f"tenfold.ops.{module}").ROWS:
                super().__setitem__(op.name, op)
            if dict.__contains__(self, key):
                return

    def whole(self) -> None:
        self.bring("")  # no op has this name, so every module is looked into

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("the op table is fixed")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


TABLE: Table = _Rows()
