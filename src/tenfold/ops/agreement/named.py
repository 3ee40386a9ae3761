"""Rules by name: a program that runs a checked plan asks none of them, so a row only names its own.

`errors.PRODUCT` is a function that imports the rules and gives `PRODUCT` of `errors`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Generic, TypeVar

from tenfold.graph.op import ErrorRule, ErrorSpread

R = TypeVar("R")


class Rules(Generic[R]):
    """The rules of a module beside this one."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Callable[[], R]:
        return partial(_rule, self._module, name)


def _rule(module: str, name: str) -> Any:
    return getattr(import_module(f"tenfold.ops.agreement.{module}"), name)


errors: Rules[ErrorRule] = Rules("errors")
matrices: Rules[ErrorRule] = Rules("matrices")
sums: Rules[ErrorRule] = Rules("sums")
spreads: Rules[ErrorSpread] = Rules("spreads")
many: Rules[ErrorSpread] = Rules("many")
