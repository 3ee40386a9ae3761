"""Callbacks: what hooks, prints and host calls call when a program runs."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from tenfold.errors import HookError, TypeMismatch
from tenfold.frozen import frozen
from tenfold.graph.op import HostRequest
from tenfold.ops import TABLE
from tenfold.trace.containers import flatten, matched
from tenfold.trace.operand import literal
from tenfold.trace.scope import outside
from tenfold.types import KIND, DType, parse_type

Value = np.ndarray[Any, Any]


@frozen
class Callbacks:
    """The callables of one run. They are bound by name and number; no graph holds one.

    `defaults` are those met while tracing, by number. `overrides` go before them: by the name of
    a hook or host call another callable, or None to silence a hook.
    """

    defaults: Sequence[Callable[..., Any]] = ()
    overrides: Mapping[str, Callable[..., Any] | None] = field(default_factory=dict)

    def answer(self, ask: HostRequest) -> list[Any]:
        """Do what an op with an effect asks for. Callables get copies: they change no value."""
        from tenfold.trace.control.encoding import decode  # few programs ask for anything

        values = [np.array(argument) for argument in ask.arguments]
        ask.arguments.clear()
        with outside():
            effect = TABLE[ask.op].effect
            assert effect is not None
            if effect.answers:
                return self._call(ask, values)
            container = decode(ask.attributes["structure"]).unflatten(values)
            if not effect.named:
                label = ask.attributes["label"]
                builtins.print(f"{label}: {container}" if label else container)
            elif (function := self._find(ask, needed=False)) is not None:
                function(container)
            return []

    def _call(self, ask: HostRequest, values: list[Value]) -> list[Any]:
        """The results of a host call; its structure is that of (arguments, results).

        The row of call_host checks their types."""
        from tenfold.trace.control.encoding import decode, encode

        types = [parse_type(t) for t in ask.attributes["types"]]
        text = ask.attributes["structure"]
        function = self._find(ask, needed=True)
        assert function is not None
        result = function(*decode(text).unflatten([*values, *types])[0])
        structure, found = flatten(result)
        encode(structure)  # so that its classes are known when the text is read again
        wanted = flatten(decode(text).unflatten([*values, *types])[1])[0]
        name = ask.attributes["name"]
        leaves = matched(wanted, structure, found)
        if leaves is None:
            raise TypeMismatch(
                f"call_host {name!r}: the function gave {structure}, {wanted} declared",
                fix="return what out_types says, in the same containers",
            )
        return [numbered(item, type.dtype) for item, type in zip(leaves, types, strict=True)]

    def _find(self, ask: HostRequest, needed: bool) -> Callable[..., Any] | None:
        name: str = ask.attributes["name"]
        default: int = ask.attributes["default"]
        if name in self.overrides and not (needed and self.overrides[name] is None):
            return self.overrides[name]
        if 0 <= default < len(self.defaults):
            return self.defaults[default]
        if default < 0 and not needed:
            return None  # a place to hook on to, and nobody did
        what = "host call" if needed else "hook"
        silence = "" if needed else f", or silence it: hooks={{{name!r}: None}}"
        raise HookError(
            f"the {what} {name!r} has no callable here: a graph does not hold any",
            fix=f"bind one by its name: hooks={{{name!r}: f}}{silence}",
        )


# The kinds of dtype that a Python number gives way to.
_GIVES_WAY: dict[type, str] = {bool: "biufc", int: "iufc", float: "fc", complex: "c"}


def numbered(item: Any, dtype: DType) -> Any:
    """A Python number as an array of the dtype, if it gives way to that; else the item."""
    return literal(item, dtype) if KIND[dtype] in _GIVES_WAY.get(type(item), "") else item
