"""A kernel and what it calls as one graph of blocks, and what is live and may be poison there.

Functions of one block without a barrier stay functions: they are called for the threads that are
there. Others are put in place, so that all threads of a launch are in one graph, in which they
diverge and meet again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from .errors import IRProblem, Site
from .instructions import Instruction
from .parse import Block, Function, Module
from .syntax import Constant, Local, Operand
from .types import VOID, Struct, Type, Vector, lanes

BARRIERS = {
    "llvm.nvvm.barrier0": "block",
    "llvm.nvvm.barrier.cta.sync.all": "block",
    "llvm.nvvm.barrier.cta.sync.aligned.all": "block",
    "llvm.nvvm.barrier.cluster.wait": "cluster",
    "llvm.nvvm.barrier.cluster.wait.aligned": "cluster",
}
# Where poison does harm, if it gets there: these give no value that could be poison in turn.
CHECKED = ("store", "load", "br", "switch", "ret", "atomicrmw", "cmpxchg", "call")
_DIVISIONS = ("udiv", "sdiv", "urem", "srem")

Lanes = tuple[bool, ...]  # which lanes may be poison


@dataclass
class Flow:
    """Blocks in the order of the text."""

    name: str
    params: list[Local]
    blocks: list[Block]
    types: dict[str, Type] = field(default_factory=dict)
    live: dict[str, list[str]] = field(default_factory=dict)  # values that a block is given
    poison: dict[str, Lanes] = field(default_factory=dict)  # of values that may be poison
    tracked: set[str] = field(default_factory=set)  # of these, whose poison is to be known


def flow(module: Module, function: Function) -> Flow:
    """One graph for a function and all that is put in place there."""
    blocks = _reachable(_flat(module, function, "", {}, ()))
    made = Flow(function.name, [Local(p.type, p.name) for p in function.params], blocks)
    _check_types(made)
    _find_live(made)
    _find_poison(made)
    return made


def is_plain(module: Module, function: Function, callers: tuple[str, ...] = ()) -> bool:
    """It stays a function: it is one block, and so is all that it calls."""
    callers = _not_twice(function, callers)
    return (
        len(function.blocks) == 1
        and not any(map(_barrier, function.blocks[0].instructions))
        and all(is_plain(module, f, callers) for f in called(module, function.blocks))
    )


def _not_twice(function: Function, callers: tuple[str, ...]) -> tuple[str, ...]:
    if function.name in callers:
        raise IRProblem(f"@{function.name} calls itself, which is not supported")
    return (*callers, function.name)


def called(module: Module, blocks: list[Block]) -> Iterator[Function]:
    """The functions that are called by blocks, those of one graph."""
    for block in blocks:
        for i in block.instructions:
            if i.op == "call" and i.data in module.functions:
                yield module.functions[i.data]


def _barrier(i: Instruction) -> str:
    return BARRIERS.get(i.data, "") if i.op == "call" else ""


def _flat(
    module: Module,
    function: Function,
    prefix: str,
    given: dict[str, Operand],
    callers: tuple[str, ...],
) -> list[Block]:
    """Blocks of a function with all it calls in place; names have a prefix, parameters are what
    is given."""
    callers = _not_twice(function, callers)
    found: list[Block] = []
    last: dict[str, str] = {}  # the label of the block where what was one block ends
    for block in function.blocks:
        now = Block(prefix + block.label)
        found.append(now)
        for count, old in enumerate(block.instructions):
            i = _renamed(old, prefix, given)
            callee = module.functions.get(i.data) if i.op == "call" else None
            waits = _barrier(i)
            if not waits and (callee is None or is_plain(module, callee)):
                now.instructions.append(i)
                continue
            after = Block(f"{now.label}+{count}", waits=waits)
            if waits:
                _check_barrier(i)
                now.instructions.append(_jump(after.label, i.site))
            else:
                assert callee is not None
                inner = f"{prefix}{function.name}.{block.label}.{count}."
                passed = dict(zip((p.name for p in callee.params), i.operands, strict=True))
                body = _flat(module, callee, inner, passed, callers)
                now.instructions.append(_jump(body[0].label, i.site))
                after.instructions += _returned(body, after.label, i)
                found += body
            found.append(after)
            now = after
        last[prefix + block.label] = now.label
    for block in found:
        block.instructions = [
            replace(i, data=tuple(last.get(label, label) for label in i.data))
            if i.op == "phi"
            else i
            for i in block.instructions
        ]
    return found


def _check_barrier(i: Instruction) -> None:
    if not all(isinstance(x, Constant) for x in i.operands):
        raise i.site.problem("a barrier with a number that is no constant")


def _renamed(i: Instruction, prefix: str, given: dict[str, Operand]) -> Instruction:
    if not prefix:
        return i
    operands = []
    for x in i.operands:
        if isinstance(x, Local):
            known = given.get(x.name)
            if known is not None and known.type != x.type:
                raise i.site.problem(f"%{x.name} is no {x.type}")
            x = known or Local(x.type, prefix + x.name)
        operands.append(x)
    data = i.data
    if i.op in ("phi", "br", "switch"):
        data = tuple(prefix + label for label in data)
    result = prefix + i.result if i.result else ""
    return replace(i, operands=tuple(operands), data=data, result=result)


def _returned(body: list[Block], label: str, call: Instruction) -> list[Instruction]:
    """Make returns jumps, and what they give a phi."""
    operands: list[Operand] = []
    labels: list[str] = []
    for block in body:
        end = block.instructions[-1]
        if end.op == "ret":
            block.instructions[-1] = _jump(label, end.site)
            operands += end.operands
            labels.append(block.label)
    if not call.result:
        return []
    made = Instruction("phi", call.result, call.type, tuple(operands), call.site, tuple(labels))
    return [made]


def _jump(label: str, site: Site) -> Instruction:
    return Instruction("br", "", VOID, (), site, (label,))


def _reachable(blocks: list[Block]) -> list[Block]:
    """Without blocks that nobody comes to."""
    by_label = {block.label: block for block in blocks}
    seen = {blocks[0].label}
    waiting = [blocks[0]]
    while waiting:
        end = waiting.pop().instructions[-1]
        for label in targets(end):
            if label not in by_label:
                raise end.site.problem(f"no block %{label}")
            if label not in seen:
                seen.add(label)
                waiting.append(by_label[label])
    kept = [block for block in blocks if block.label in seen]
    for block in kept:
        block.instructions = [_without(i, seen) if i.op == "phi" else i for i in block.instructions]
    return kept


def _without(phi: Instruction, seen: set[str]) -> Instruction:
    pairs = zip(phi.operands, phi.data, strict=True)
    kept = [(operand, label) for operand, label in pairs if label in seen]
    return replace(phi, operands=tuple(x for x, _ in kept), data=tuple(label for _, label in kept))


def targets(end: Instruction) -> tuple[str, ...]:
    return end.data if end.op in ("br", "switch") else ()


def incoming(block: Block, label: str) -> dict[str, Operand]:
    """What the phis of a block are when it is come to from another."""
    found: dict[str, Operand] = {}
    for i in block.instructions:
        if i.op == "phi":
            if label not in i.data:
                raise i.site.problem(f"nothing for %{label}")
            found[i.result] = i.operands[i.data.index(label)]
    return found


def _check_types(f: Flow) -> None:
    f.types = {p.name: p.type for p in f.params}
    for block in f.blocks:
        for i in block.instructions:
            if i.result:
                if i.result in f.types:
                    raise i.site.problem(f"%{i.result} is defined twice")
                f.types[i.result] = i.type
    for block in f.blocks:
        for i in block.instructions:
            for x in i.operands:
                if isinstance(x, Local) and f.types.get(x.name) != x.type:
                    raise i.site.problem(f"no {x.type} %{x.name} is defined")


def _find_live(f: Flow) -> None:
    """For each block the values that it takes: its phis, and what it needs of others."""
    by_label = {block.label: block for block in f.blocks}
    needed: dict[str, set[str]] = {block.label: set() for block in f.blocks}
    changed = True
    while changed:
        changed = False
        for block in reversed(f.blocks):
            after: set[str] = set()
            for label in targets(block.instructions[-1]):
                target = by_label[label]
                phis = incoming(target, block.label)
                after |= needed[label] - phis.keys()
                after |= {x.name for x in phis.values() if isinstance(x, Local)}
            for i in reversed(block.instructions):
                after.discard(i.result)
                if i.op != "phi":
                    after |= {x.name for x in i.operands if isinstance(x, Local)}
            if after != needed[block.label]:
                needed[block.label] = after
                changed = True
    first = f.blocks[0]
    unknown = needed[first.label] - {p.name for p in f.params}
    if unknown:
        raise IRProblem(f"%{sorted(unknown)[0]} of @{f.name} is used before it is defined")
    for block in f.blocks:
        own = [i.result for i in block.instructions if i.op == "phi"]
        f.live[block.label] = own + sorted(needed[block.label])
    f.live[first.label] = [p.name for p in f.params]


def _find_poison(f: Flow) -> None:
    """Which values may be poison: found from constants onwards, until nothing changes. Most
    vectors that begin as poison have been filled when they are used."""
    changed = True
    while changed:
        changed = False
        for block in f.blocks:
            for i in block.instructions:
                new = i.op == "shufflevector" and None in i.data
                if not i.result or not (new or any(_lanes(f, x) for x in i.operands)):
                    continue
                found = _may_be(f, i)
                if any(found) and f.poison.get(i.result) != found:
                    f.poison[i.result] = found
                    changed = True
    _find_tracked(f)


def _find_tracked(f: Flow) -> None:
    """Those of them that get to where poison does harm."""
    waiting: list[str] = []
    users: dict[str, list[str]] = {}
    for block in f.blocks:
        for i in block.instructions:
            used = [x.name for x in i.operands if isinstance(x, Local) and x.name in f.poison]
            if i.op in CHECKED or i.op in _DIVISIONS:
                waiting += used
            elif i.result in f.poison:
                users.setdefault(i.result, []).extend(used)
    while waiting:
        name = waiting.pop()
        if name not in f.tracked:
            f.tracked.add(name)
            waiting += users.get(name, [])


def _lanes(f: Flow, x: Operand) -> Lanes | None:
    """The lanes of an operand that may be poison, None if none."""
    if isinstance(x, Local):
        return f.poison.get(x.name)
    if x.poison is None:
        return None
    if isinstance(x.type, Struct):
        return tuple(bool(np.any(p)) for p in x.poison)
    return tuple(bool(p) for p in np.atleast_1d(x.poison))


def _count(ty: Type) -> int:
    """Lanes; of a struct its fields."""
    return len(ty.elements) if isinstance(ty, Struct) else lanes(ty)


def _may_be(f: Flow, i: Instruction) -> Lanes:
    """Lanes of a result that may be poison: exact for what moves lanes, else all of which an
    operand's is."""
    count = _count(i.type)
    parts = [_lanes(f, x) or (False,) * _count(x.type) for x in i.operands]
    if i.op in ("freeze", *CHECKED):
        return (False,) * count  # what is checked is no poison afterwards
    if i.op == "shufflevector":
        both = parts[0] + parts[1]
        return tuple(pick is None or both[pick] for pick in i.data)
    if i.op in ("extractelement", "insertelement") and isinstance(i.operands[-1], Constant):
        lane = int(i.operands[-1].value)
        if i.op == "extractelement":
            return (parts[0][lane],)
        return (*parts[0][:lane], parts[1][0], *parts[0][lane + 1 :])
    if i.op == "extractvalue":
        return (parts[0][i.data],) * count
    if i.op == "insertvalue":
        return (*parts[0][: i.data], any(parts[1]), *parts[0][i.data + 1 :])
    same = isinstance(i.type, Vector | Struct) and all(len(p) in (1, count) for p in parts)
    if same and i.op != "bitcast":
        return tuple(any(p[lane % len(p)] for p in parts) for lane in range(count))
    return (any(any(p) for p in parts),) * count
