"""Small arguments and results by way of pinned memory: their copies are nodes of the graph, so that
a call is one launch. `parts` say for native code where each lies from `pinned` on, and its bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.backends.cuda.recording import LibraryNode, place_address, place_of
from tenfold.backends.cuda.run.record import Recorder, on_device
from tenfold.backends.cuda.target import CudaTarget
from tenfold.plan import Plan
from tenfold.types import TensorType

if TYPE_CHECKING:
    from tenfold.backends.cuda.driver.device import Launchable
    from tenfold.backends.cuda.run.replay import Replay

Array = np.ndarray[Any, Any]
MOST = 1 << 18  # bytes of all arguments and results together
CARRIED = 1 << 24  # and of those on the device
_ALIGN = 64


class Staging:
    """A plan's graph with the copies of its first arguments and of its results: one each, for
    those lie side by side here and there."""

    def __init__(
        self,
        replay: Replay,
        arguments: Sequence[TensorType],
        results: Sequence[TensorType],
        places: Sequence[int],
    ) -> None:
        device, types = replay.around.device, [*arguments, *results]
        starts, total = [0], 0
        for type in types:
            total += -(-type.nbytes // _ALIGN) * _ALIGN
            starts.append(total)
        come = starts[len(arguments)]  # bytes of the arguments
        self._block, pinned = device.pinned(max(total, 1))
        self.pinned: int = self._block.__array_interface__["data"][0]
        pairs = zip(starts, (t.nbytes for t in types), strict=False)
        self.parts = [number for pair in pairs for number in pair]
        views = [
            device.view(self._block, pinned + start, start, type)
            for start, type in zip(starts, types, strict=False)
        ]
        self.arguments, self.results = views[: len(arguments)], views[len(arguments) :]
        own, recorder = replay.around.room(total), Recorder(replay.around)
        recorder.copy(own, pinned, come)
        at = [own + start for start in starts]
        first = len(places) - len(results)
        captured = [place_address(n) for n in range(len(arguments), first)]
        inputs = [*at[: len(arguments)], *captured]
        recorder.steps(replay.frame(inputs, at[len(arguments) : len(types)]))
        recorder.copy(pinned + come, own + come, total - come)
        self.graph = device.instantiate(recorder.finish(), places)

    def fill(self, given: Sequence[Array]) -> None:
        for view, array in zip(self.arguments, given, strict=True):
            view[...] = array

    def taken(self) -> list[Array]:
        """The results, in memory of their own."""
        return [np.array(view) for view in self.results]


def carried(replay: Replay, places: Sequence[int], moving: Collection[int]) -> Launchable | None:
    """A plan's graph in which arrays that a library reads or makes are copied to fixed places, and
    from there: whoever launches it need not ask the library anew. `moving` are the places that
    calls bring. None where that would be many bytes."""
    plan, recorder = replay.plan, Recorder(replay.around)
    first = len(plan.graph.parameters)
    types = [*(p.type for p in plan.graph.parameters), *plan.graph.output_types]
    nodes = (n for one in replay.recordings for n in one.every() if isinstance(n, LibraryNode))
    found = {at[0] for node in nodes for at in map(place_of, node.places) if at is not None}
    fixed = sorted(found.intersection(moving))
    if sum(types[n].nbytes for n in fixed) > CARRIED:
        return None
    at = [places[n] if n in fixed else place_address(n) for n in range(len(places))]
    for n in fixed:
        if n < first:
            recorder.copy(at[n], place_address(n), types[n].nbytes)
    recorder.steps(replay.frame(at[:first], at[first:]))
    for n in fixed:
        if n >= first:
            recorder.copy(place_address(n), at[n], types[n].nbytes)
    return replay.around.device.instantiate(recorder.finish(), places)


def may_stage(
    plan: Plan, target: CudaTarget, arguments: Sequence[TensorType], results: Sequence[TensorType]
) -> bool:
    """Whether arrays are few bytes, and all of the plan is one graph."""
    total = sum(t.nbytes for t in (*arguments, *results))
    return total <= MOST and on_device(plan, target)[id(plan)]
