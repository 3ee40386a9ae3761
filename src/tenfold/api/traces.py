"""The specialisations of a function: how one is traced, and those that are kept, by signature."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from tenfold.api.call.arguments import Binder, Call, describe_leaf
from tenfold.api.captures.captures import Survey, survey
from tenfold.api.captures.clocks import warn_of_clocks
from tenfold.api.captures.places import Constant
from tenfold.api.captures.snapshot import Snapshot
from tenfold.api.specialisation import CapturedArray, Specialisation
from tenfold.collector import resting
from tenfold.stats import count, timed
from tenfold.trace.function import trace_function

TRACES = 4096  # signatures of one function that are kept
NODES = 1 << 17  # of their graphs together
ALIKE = 64  # traces with one signature: they differ in what the function closes over, say


class Traces:
    """The specialisations of one function; of those least recently used `drop` is told."""

    def __init__(self, drop: Callable[[Specialisation], None]) -> None:
        # What was used last is last among signatures, and first among those of one.
        self._kept: OrderedDict[Any, list[Specialisation]] = OrderedDict()
        self._weight = 0  # nodes of these
        self._told = drop

    def __len__(self) -> int:
        return len(self._kept)

    def every(self) -> list[Specialisation]:
        """All that are kept. Any thread may ask, whatever it holds."""
        return [one for kept in list(self._kept.values()) for one in kept]

    def find(self, call: Call, key: Any) -> Specialisation | None:
        """The trace that serves such calls now, if there is one; `key` is the call's."""
        kept = self._kept.get(key, [])
        for number, one in enumerate(kept):
            if one.traced.takes(call.leaves) and one.fits():
                if number:
                    kept.insert(0, kept.pop(number))
                self._kept.move_to_end(key)
                return one
        return None

    def add(self, key: Any, one: Specialisation) -> None:
        kept = self._kept[key] = [one, *self._kept.get(key, [])]
        self._kept.move_to_end(key)
        self._weight += len(one.traced.graph.nodes)
        self._drop(kept, ALIKE)
        while len(self._kept) > TRACES or (len(self._kept) > 1 and self._weight > NODES):
            self._drop(self._kept.pop(self._unused()), 0)

    def _unused(self) -> Any:
        """The first signature, but for the newest, that answered no call since it was last looked
        at here: calls that native code answers do not come by."""
        oldest = next(iter(self._kept))
        for _ in range(len(self._kept) - 1):
            key, kept = next(iter(self._kept.items()))
            if not any(one.was_used() for one in kept):
                return key
            self._kept.move_to_end(key)
        return oldest

    def _drop(self, kept: list[Specialisation], most: int) -> None:
        while len(kept) > most:
            one = kept.pop()
            self._weight -= len(one.traced.graph.nodes)
            self._told(one)


def trace_call(
    function: Callable[..., Any], label: str, binder: Binder, call: Call
) -> Specialisation:
    """Trace a function for a call; what it reads is found before, and looked at again after."""
    leaves = [
        describe_leaf(leaf, name, function)
        for leaf, name in zip(call.leaves, call.leaf_names(), strict=True)
    ]
    with timed("trace"), resting():
        found: Survey = survey(function, [(name, value) for name, _, value in call.statics])
        warn_of_clocks(found)
        still = Snapshot(found)
        traced = trace_function(
            function,
            leaves,
            lambda arrays: binder.call(call, list(arrays)),
            found.name,
            found.variables,
        )
        still.check(label)
    count("traces")
    origins = [c.array if c.origin is None else c.origin for c in traced.captures]
    captures = [
        CapturedArray.take(c.name, found.places(a), a)
        for c, a in zip(traced.captures, origins, strict=True)
    ]
    taken = {id(a) for a in origins} - {id(a) for a in traced.baked}
    # Arrays that are read but are no inputs went into something computed while tracing: another
    # array in such a place traces anew.
    aside = [
        Constant(place, array)
        for key, (array, places) in found.arrays.items()
        if key not in taken
        for place in places
    ]
    return Specialisation(traced, captures, [*found.watched, *aside], found.unguarded)
