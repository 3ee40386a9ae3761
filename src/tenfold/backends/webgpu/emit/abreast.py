"""The copies of a run side by side: what all of them read is on its way at once, where one after
the other would wait for each element."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tenfold.backends.webgpu.emit.joining import Held, Joining
from tenfold.backends.webgpu.emit.serial import SerialEmitter, levels_of
from tenfold.kernel.analyse.nest import Compute, Loop

_MOST = 12  # instructions of a position, which is written once for each copy

Visit = Callable[[dict[int, Held]], None]  # one position: a value for each reduction


def is_short(emitter: SerialEmitter, item: Loop) -> bool:
    """Whether a loop over one axis has sums of floats alone, of what is soon computed."""
    joinings = [Joining.of(emitter.kernel, m) for m in item.members]
    plain = all(isinstance(one, Compute) for one in item.body) and len(levels_of(item)) == 1
    return plain and len(item.body) <= _MOST and all(j.shaped for j in joinings)


def abreast(
    emitter: SerialEmitter,
    axis: int,
    shaped: Mapping[int, Joining],
    visit: Visit,
    first: str,
    stop: str,
) -> dict[int, Held]:
    """What a lane has of a run that begins and ends there. A copy that has no element left reads
    the last one, and drops it."""
    w, fold = emitter.w, emitter.kernel.fold
    copies = [{m: emitter.variables(j) for m, j in shaped.items()} for _ in range(fold.copies)]
    at = w.fresh("i")
    with w.block(f"for (var {at} = {first}; {at} < {stop}; {at} += {fold.round})"):
        for n, held in enumerate(copies):
            if not n:
                with emitter.v.inside(axis, at):
                    visit(held)
                continue
            place = w.let("i32", f"{at} + {n * fold.lanes}")
            there = w.let("bool", f"{place} < {stop}")
            tried = {
                m: [w.var(ty, x) for ty, x in zip(j.types, held[m], strict=True)]
                for m, j in shaped.items()
            }
            w.computed.update(x for one in tried.values() for x in one)
            with emitter.v.inside(axis, w.let("i32", f"min({place}, {stop} - 1)")):
                visit(tried)
            for m, names in held.items():
                for name, x in zip(names, tried[m], strict=True):
                    w.put(f"{name} = select({name}, {x}, {there});")
    while len(copies) > 1:  # neighbours, as the fold has it
        pairs = zip(copies[::2], copies[1::2], strict=True)
        copies = [{m: j.merge(w, a[m], b[m]) for m, j in shaped.items()} for a, b in pairs]
    (made,) = copies
    w.computed.update(x for held in made.values() for x in held)
    return made
