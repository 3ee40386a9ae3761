"""Few long rows: parts of a row by teams of their own, then what the parts came to by one team.

Parts begin at multiples of a power of two of the fold's chunks, so what they come to makes a
balanced tree by position.
"""

from __future__ import annotations

from typing import Any

from tenfold.backends.webgpu.emit.counter import Counter
from tenfold.backends.webgpu.emit.joining import Held, Joining
from tenfold.backends.webgpu.emit.module import ModuleWriter, scattered, spread_over, total
from tenfold.backends.webgpu.emit.rounds import check_rounds, rounds_of
from tenfold.backends.webgpu.emit.rownest import Rows, begin_rows
from tenfold.backends.webgpu.emit.serial import levels_of
from tenfold.backends.webgpu.emit.team import WORKGROUP, Team, TeamEmitter
from tenfold.backends.webgpu.shader import Shader
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.backends.webgpu.wgsl.invocation import number
from tenfold.backends.webgpu.wgsl.types import of_shared, to_shared
from tenfold.kernel.analyse.nest import Compute, Guard, Item, Loop, Write
from tenfold.kernel.ir.kernel import Kernel
from tenfold.kernel.ir.number import prefers_less

_PART = 8192  # positions: a chunk of the fold
_LONG = 4 * _PART
_MANY = 64  # rows that keep a GPU busy as they are


def is_long(kernel: Kernel, target: WebGPUTarget, rows: Rows, team: Team) -> bool:
    """Whether rows are better gone through by parts, and can be."""
    loop = _first(rows)
    if loop is None or len(levels_of(loop)) > 1:
        return False
    if any(isinstance(item, (Write, Guard)) for item in loop.body):
        return False
    extent = kernel.axes[loop.axis].extent
    if target.loop_limit and not rounds_of(kernel, [loop]) < target.loop_limit * team.size:
        return True
    groups = (total([kernel.axes[a].extent for a in rows.outer]) + team.rows - 1) // team.rows
    return not prefers_less(extent, _LONG) and prefers_less(groups, _MANY)


def _first(rows: Rows) -> Loop | None:
    """The first loop over a row; it reduces."""
    found = next((item for item in rows.items if isinstance(item, Loop)), None)
    return found if found is not None and found.members else None


def emit_long(
    kernel: Kernel,
    target: WebGPUTarget,
    rows: Rows,
    along: dict[int, int | None],
    team: Team,
) -> Shader:
    """A legal kernel whose rows begin with a long reduction."""
    loop = _first(rows)
    assert loop is not None
    m = ModuleWriter(kernel, target, WORKGROUP)
    parts = (kernel.axes[loop.axis].extent + _PART - 1) // _PART
    count = total([kernel.axes[a].extent for a in rows.outer])
    names = _emit_parts(m, rows, loop, along, team, parts, count)
    whole = TeamEmitter(m, m.invocation(scattered(kernel)), along, Team(WORKGROUP))
    begin_rows(whole, rows)
    at = rows.items.index(loop)
    whole.block(rows.items[:at])
    whole.found({member: _joined(whole, member, names[member], parts) for member in loop.members})
    rest = rows.items[at + 1 :]
    check_rounds(kernel, target, rest, WORKGROUP)
    whole.block(rest)
    m.entry(whole.w, count)
    return m.finish(f"parts of {_PART} positions by {team.size} invocations each, then rows")


def _emit_parts(
    m: ModuleWriter,
    rows: Rows,
    loop: Loop,
    along: dict[int, int | None],
    team: Team,
    parts: Any,
    count: Any,
) -> dict[int, list[str]]:
    """The entry point for parts, and the memory where it leaves what each reduction came to."""
    kernel = m.kernel
    emitter = TeamEmitter(m, m.invocation(), along, team)
    v, w = emitter.v, emitter.w
    emitter.begin()
    group = w.let("i32", "i32(group.x + group.y * grid.x)")
    above = w.let("i32", f"{group} / {number(parts)}")
    part = w.let("i32", f"{group} - {above} * {number(parts)}")
    at = w.let("i32", f"{above} * {team.rows} + {emitter.row}")
    emitter.live = w.let("bool", f"{at} < {number(count)}")
    extents: list[Any] = [kernel.axes[a].extent for a in rows.outer]
    spread_over(v, rows.outer, extents, w.let("i32", f"min({at}, {number(count)} - 1)"))
    for some in (*rows.straight, rows.items[: rows.items.index(loop)]):
        emitter.block(_computed(some))
    low = w.let("i32", f"{part} * {_PART}")
    extent = number(kernel.axes[loop.axis].extent)
    emitter.part = low, w.let("i32", f"min({low} + {_PART}, {extent})")
    emitter.block([loop])
    names: dict[int, list[str]] = {}
    with w.block(f"if ({emitter.tests()})"):
        for member in loop.members:
            joining, states = Joining.of(kernel, member), [v.get(member)]
            states += [v.get(n) for n, i in enumerate(kernel.instructions)
                       if i.op == "state" and i.args == (member,)][:1]  # fmt: skip
            names[member] = []
            for ty, x in zip(joining.types, states, strict=False):
                names[member].append(m.partial(ty, count * parts))
                text = to_shared(ty, x)
                w.put(f"{names[member][-1]}[{at} * {number(parts)} + {part}] = {text};")
    m.entry(w, (count + team.rows - 1) // team.rows * parts)
    return names


def _computed(items: tuple[Item, ...]) -> list[Item]:
    """What is computed among items; stores and checks are the other entry point's."""
    return [item for item in items if isinstance(item, Compute)]


def _joined(emitter: TeamEmitter, member: int, names: list[str], parts: Any) -> Held:
    """What the parts of a row came to: each member takes neighbouring ones."""
    w, joining = emitter.w, Joining.of(emitter.kernel, member)
    each = 1 << ((parts - 1) // emitter.team.size).bit_length()
    first = w.let("i32", f"{emitter.me} * {number(each)}")
    stop = w.let("i32", f"min({first} + {number(each)}, {number(parts)})")
    counter = Counter(w, joining) if joining.shaped else None
    held = [] if counter else emitter.variables(joining)
    at = w.fresh("i")
    with w.block(f"for (var {at} = {first}; {at} < {stop}; {at}++)"):
        place = f"{emitter.number} * {number(parts)} + {at}"
        one = [
            w.let(ty, of_shared(ty, f"{name}[{place}]"))
            for ty, name in zip(joining.types, names, strict=True)
        ]
        w.computed.update(one)
        if counter:
            counter.join(one[0])
        else:
            for name, x in zip(held, joining.merge(w, list(held), one), strict=True):
                w.put(f"{name} = {x};")
    return emitter.together(joining, [counter.total()] if counter else held, 1)
