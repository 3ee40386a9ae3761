"""The form of a call: all that tells it from others but for the types of its arrays.

Calls of one form are taken apart and put together by one function, and differ only in which plan
their arrays need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from tenfold.api.call.arguments import Call
from tenfold.backends.program import ARGUMENT, NOTHING, OUTPUT, OUTPUTS
from tenfold.frozen import frozen
from tenfold.trace.containers import LEAF, Structure
from tenfold.trace.exact import exact
from tenfold.trace.function import FunctionTrace, results, scalar

Tokens = tuple[Any, ...]

SCALARS = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}
_EITHER = Parameter.POSITIONAL_OR_KEYWORD
_NONE = (("static", type(None), None),)
_LARGEST = 200  # tokens: a larger or deeper container is not worth a function of its own


@frozen(eq=False)
class CallForm:
    """How calls look, and what they give: structures, static values, Python numbers."""

    signature: Signature
    names: tuple[str, ...]  # the arguments given, static ones left out
    structure: Structure  # of the tuple of their values
    statics: tuple[tuple[str, type, Any], ...]
    numbers: tuple[type | None, ...]  # of each leaf: the type of a number, None for an array
    outputs: Structure
    weak: tuple[type | None, ...]  # of each output: the type of a Python number, or None
    updates: tuple[int, ...]  # leaves that the last outputs are written back into
    returned: tuple[int | None, ...]  # of each output: the updated leaf that it is, or None
    looked_at: bool  # whether Python has to look at values: integers that must fit a dtype

    @staticmethod
    def of(call: Call, traced: FunctionTrace, signature: Signature) -> CallForm:
        numbers = tuple(
            type(leaf) if type(leaf) in SCALARS or n in traced.rebound else None
            for n, leaf in enumerate(call.leaves)
        )
        results = (traced.outputs, traced.weak, traced.updates, traced.returned)
        given = (signature, call.names, call.structure, call.statics, numbers)
        return CallForm(*given, *results, bool(traced.limits))

    @property
    def key(self) -> Any:
        """What is equal for equal forms of one function."""
        statics = tuple([(name, exact(value)) for name, _, value in self.statics])
        given = (self.names, self.structure.key, statics, self.numbers)
        return *given, self.outputs, self.weak, self.updates, self.returned

    @property
    def answer(self) -> int | None:
        """What such calls give, where they are arrays in, arrays out, all by position: native code
        needs no Python at all. None for others."""
        tokens, returned = self.outputs.tokens, self.returned
        plain = not self.statics and not any(self.numbers) and not any(self.weak)
        if not plain or self.structure.tokens != self._by_position():
            return None
        if tokens == (LEAF,):
            return OUTPUT if returned[0] is None else ARGUMENT + returned[0]
        if tokens == _NONE:
            return NOTHING
        return OUTPUTS if tokens == _tuple_of(len(tokens) - 1) and set(returned) <= {None} else None

    @property
    def small(self) -> bool:
        """Whether a function of its own can take such calls apart, and is worth making."""
        kinds = {p.kind for p in self.signature.parameters.values()}
        return (
            len(self.structure.tokens) + len(self.outputs.tokens) <= _LARGEST
            and kinds <= {_EITHER, Parameter.KEYWORD_ONLY}
            and not self.looked_at
            and not (self.updates and any(map(_may_raise, self.outputs.tokens)))
        )

    def results(
        self,
        outputs: Sequence[Any],
        leaves: Sequence[Any],
        give: Callable[[Any], Any] | None = None,
    ) -> Any:
        """The outputs of a program as the function gives them, arrays as `give` makes them."""
        return results(self.outputs, self.weak, self.returned, outputs, leaves, give or scalar)

    def _by_position(self) -> Tokens | None:
        """How a call looks whose leaves are just its positional arguments; None where that can't
        be."""
        given = list(self.signature.parameters.values())[: len(self.names)]
        if self.names != tuple(p.name for p in given):
            return None
        kinds, count = [p.kind for p in given], len(self.numbers)
        if kinds and kinds[-1] is Parameter.VAR_POSITIONAL:
            before = len(given) - 1
            rest = _tuple_of(count - before)
            return (("tuple", len(given)), *(LEAF,) * before, *rest) if before <= count else None
        return _tuple_of(count) if set(kinds) <= {Parameter.POSITIONAL_ONLY, _EITHER} else None


def _may_raise(token: Any) -> bool:
    """Whether building such a container runs code of the user's: a named tuple's subclass."""
    return token[0] == "named" and "_fields" not in vars(token[1])


def _tuple_of(count: int) -> Tokens:
    return (("tuple", count), *(LEAF,) * count)
