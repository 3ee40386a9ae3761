"""Blocks of a kernel as Python functions, made once a kernel.

A block is a function of the launch, the threads that are there and the values that it takes. It
returns where they go: (number of a block, threads, values) for each part of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .context import Context, Ints
from .errors import Site, Undefined
from .expressions import Expressions
from .instructions import Instruction, Slot
from .lower import CHECKED, Flow, called, flow, incoming, is_plain, targets
from .memory import LOCAL
from .parse import Block, Function, Module, Parameter
from .syntax import Constant, Local, Operand
from .types import VOID, Rank, Struct, Type, Value, Vector, lanes, rank, rounded_up

Values = tuple[Value, ...]
Parts = tuple[tuple[int, Ints, Values], ...]
Ranks = list[tuple[Rank, ...]]
_GAP = 4096


@dataclass(frozen=True, eq=False)
class Code:
    """A kernel that can be run."""

    name: str
    params: list[Parameter]
    attributes: dict[str, str]
    blocks: list[Callable[[Context, Ints, Values], Parts]]
    ranks: Ranks  # of the values that blocks take
    waits: list[str]  # the barrier before each block: '', 'block' or 'cluster'
    sites: list[Site]  # where blocks begin; of one after a barrier, the barrier
    slots: dict[Slot, int]  # addresses of allocas
    source: str


def compiled(module: Module, function: Function) -> Code:
    """A kernel as code."""
    main = flow(module, function)
    ranks: Ranks = []
    e = Expressions(module)
    e.namespace |= {"branch": branch, "switch": switch, "ended": ended, "ranks": ranks}
    e.namespace["Undefined"] = Undefined
    flows = [main]
    waiting = [main]
    while waiting:  # functions that are called, and what these call
        for callee in called(module, waiting.pop().blocks):
            if callee.name not in e.functions:
                assert is_plain(module, callee)
                e.functions[callee.name] = f"f{len(e.functions)}_"
                flows.append(flow(module, callee))
                waiting.append(flows[-1])
    e.addresses = _addresses(flows)
    lines: list[str] = []
    for one in flows[1:]:
        lines += _Writer(e, one).function(module.functions[one.name])
    writer = _Writer(e, main)
    for number in range(len(main.blocks)):
        lines += writer.block(number)
        ranks.append(writer.ranks(number))
    source = "\n".join(lines)
    exec(compile(source, f"<simt {function.name}>", "exec"), e.namespace)
    return Code(
        name=function.name,
        params=function.params,
        attributes=function.attributes,
        blocks=[e.namespace[f"block{n}"] for n in range(len(main.blocks))],
        ranks=ranks,
        waits=[block.waits for block in main.blocks],
        sites=[_site(main, block) for block in main.blocks],
        slots=e.addresses,
        source=source,
    )


def _site(f: Flow, block: Block) -> Site:
    if block.waits:  # it is come to from one block alone
        for other in f.blocks:
            if block.label in targets(other.instructions[-1]):
                return other.instructions[-1].site
    return block.instructions[0].site


def _addresses(flows: list[Flow]) -> dict[Slot, int]:
    found: dict[Slot, int] = {}
    free = LOCAL
    for f in flows:
        for block in f.blocks:
            for i in block.instructions:
                if i.op == "alloca" and i.data not in found:
                    found[i.data] = rounded_up(free, max(16, i.data.align))
                    free = found[i.data] + i.data.size + _GAP
    return found


class _Writer:
    """The text of a function's blocks. Beside a value that may be poison stands another, which
    says where it is."""

    def __init__(self, e: Expressions, f: Flow) -> None:
        self.e, self.f = e, f
        self.numbers = {block.label: n for n, block in enumerate(f.blocks)}
        e.idents = {}

    def function(self, function: Function) -> list[str]:
        """One that stays a function."""
        params = ["ctx", "rows", *(self.e.ident(p.name) for p in function.params)]
        *body, end = self.f.blocks[0].instructions
        lines = [f"def {self.e.functions[function.name]}({', '.join(params)}):"]
        lines += self._lines(body, {x.name for x in end.operands if isinstance(x, Local)})
        lines += self._checks(end)
        if end.op != "ret":
            return lines + self._end(self.f.blocks[0], end)
        given = [self.e.arg(x) for x in end.operands]
        return [*lines, f"  return {', '.join(given) or 'None'}"]

    def block(self, number: int) -> list[str]:
        block = self.f.blocks[number]
        taken = self.taken(block.label)
        lines = [f"def block{number}(ctx, rows, values):"]
        if taken:
            lines.append(f"  {', '.join(taken)}, = values")
        body = [i for i in block.instructions[:-1] if i.op != "phi"]
        end = block.instructions[-1]
        lines += self._lines(body, self._used(block, end))
        return [*lines, *self._checks(end), *self._end(block, end)]

    def taken(self, label: str) -> list[str]:
        """The names of what a block takes: values, and where those that may be so are poison."""
        names = self.f.live[label]
        marks = [self._mark(name) for name in names if name in self.f.tracked]
        return [self.e.ident(name) for name in names] + marks

    def ranks(self, number: int) -> tuple[Rank, ...]:
        names = self.f.live[self.f.blocks[number].label]
        found = [rank(self.f.types[name]) for name in names]
        return (*found, *(rank(self.f.types[n]) for n in names if n in self.f.tracked))

    def _mark(self, name: str) -> str:
        return f"p{self.e.ident(name)}"

    def _used(self, block: Block, end: Instruction) -> set[str]:
        """What the end of a block uses or passes on."""
        found = {x.name for x in end.operands if isinstance(x, Local)}
        for label in targets(end):
            phis = incoming(self.f.blocks[self.numbers[label]], block.label)
            found |= {x.name for x in phis.values() if isinstance(x, Local)}
            found |= set(self.f.live[label]) - phis.keys()
        return found

    def _lines(self, body: list[Instruction], kept: set[str]) -> list[str]:
        """Values are dropped after their last use: memory that is used again is in the cache."""
        last: dict[str, int] = {}
        for n, i in enumerate(body):
            last.update({x.name: n for x in i.operands if isinstance(x, Local)})
        lines: list[str] = []
        for n, i in enumerate(body):
            lines += self._checks(i)
            self._check_call(i)
            text = self.e.expression(i)
            named = bool(i.result) and i.type != VOID
            lines.append(f"  {self.e.ident(i.result)} = {text}" if named else f"  {text}")
            if i.result in self.f.tracked:
                lines.append(f"  {self._mark(i.result)} = {self._poison(i)}")
            used = {x.name for x in i.operands if isinstance(x, Local)}
            gone = sorted(x for x in used if last[x] == n and x not in kept)
            if named and i.result not in last and i.result not in kept:
                gone.append(i.result)
            gone = [self.e.ident(x) for x in gone]
            if gone:
                lines.append(f"  del {', '.join(gone)}")
        return lines

    def _check_call(self, i: Instruction) -> None:
        callee = self.e.module.functions.get(i.data) if i.op == "call" else None
        if callee is not None:
            given = [x.type for x in i.operands]
            if given != [p.type for p in callee.params] or callee.result != i.type:
                raise i.site.problem(f"@{callee.name} takes or gives other types")

    # Where threads go

    def _end(self, block: Block, end: Instruction) -> list[str]:
        if end.op == "ret":
            return ["  return ended(ctx, rows)"]
        if end.op == "unreachable":
            site = self.e.name(end.site)
            return [f"  raise ctx.fault(Undefined, {site}, rows[0], 'what is unreachable')"]
        parts = [(self.numbers[label], self._passed(block, label)) for label in end.data]
        if len(parts) == 1:
            return [f"  return (({parts[0][0]}, rows, {parts[0][1]}),)"]
        goals = ", ".join(f"({number}, {values})" for number, values in parts)
        condition = self.e.arg(end.operands[0])
        if end.op == "br":
            return [f"  return branch(rows, {condition}, {goals}, ranks)"]
        cases = self.e.name([x.value for x in end.operands[1:] if isinstance(x, Constant)])
        return [f"  return switch(rows, {condition}, {cases}, [{goals}], ranks)"]

    def _passed(self, block: Block, label: str) -> str:
        """The values that another block takes, as it is come to from this one."""
        phis = incoming(self.f.blocks[self.numbers[label]], block.label)
        texts, marks = [], []
        for name in self.f.live[label]:
            x = phis.get(name, Local(self.f.types[name], name))
            texts.append(self.e.arg(x))
            if name in self.f.tracked:
                marks.append(self._mark_of(x) or self._clean(x.type))
        return "(" + "".join(f"{text}, " for text in texts + marks) + ")"

    # Poison

    def _checks(self, i: Instruction) -> list[str]:
        """Lines that raise if poison does harm."""
        if i.op not in CHECKED and i.op not in ("udiv", "sdiv", "urem", "srem"):
            return []
        lines = []
        for x in i.operands:
            mark = self._mark_of(x)
            if mark is None:
                continue
            parts = [(mark, x.type)]
            if isinstance(x.type, Struct):
                parts = [(f"{mark}[{n}]", ty) for n, ty in enumerate(x.type.elements)]
            site = self.e.name(i.site)
            lines += [
                f"  check(ctx, rows, {site}, {rank(ty)}, {text}, 'poison gets to where it matters')"
                for text, ty in parts
            ]
        return lines

    def _mark_of(self, x: Operand) -> str | None:
        """Where an operand is poison, None if nowhere."""
        if isinstance(x, Local):
            return self._mark(x.name) if x.name in self.f.tracked else None
        return None if x.poison is None else self.e.name(x.poison)

    def _clean(self, ty: Type) -> str:
        return self.e.name(_clean(ty))

    def _poison(self, i: Instruction) -> str:
        """Where a result is poison: moved as the values are, else where any operand is."""
        marks = [self._mark_of(x) for x in i.operands]
        full = [m or self._clean(x.type) for m, x in zip(marks, i.operands, strict=True)]
        if i.op == "select":
            condition = self.e.arg(i.operands[0])
            wide = isinstance(i.operands[0].type, Vector)
            kind = "_struct" if isinstance(i.type, Struct) else "_lanes" if wide else ""
            text = f"select{kind}({condition}, {full[1]}, {full[2]})"
            if marks[0] is None:
                return text
            mark = marks[0] if wide == isinstance(i.type, Vector) else f"{marks[0]}[..., None]"
            return f"{text} | {mark}"
        if i.op in ("extractelement", "insertelement"):
            index = i.operands[-1]
            if isinstance(index, Constant):
                lane = int(index.value)
                if i.op == "extractelement":
                    return f"{full[0]}.T[{lane}]"
                return f"insert({full[0]}, {full[1]}, {lane})"
            given = ", ".join([*full[:-1], self.e.arg(index)])
            where = f"ctx, rows, {self.e.name(i.site)}"
            return f"{'extract' if i.op == 'extractelement' else 'insert_at'}({where}, {given})"
        if i.op == "shufflevector":
            picks = self.e.name(np.array([pick or 0 for pick in i.data]))
            dead = self.e.name(np.array([pick is None for pick in i.data]))
            return f"shuffle({full[0]}, {full[1]}, {picks}) | {dead}"
        if i.op == "extractvalue":
            return f"{full[0]}[{i.data}]"
        if i.op == "insertvalue":
            return f"({full[0]}[:{i.data}] + ({full[1]},) + {full[0]}[{i.data + 1}:])"
        if i.op == "bitcast" and lanes(i.type) != lanes(i.operands[0].type):
            any_of = f"{full[0]}.any(-1)" if rank(i.operands[0].type) else full[0]
            if not rank(i.type):
                return any_of
            return f"({self._clean(i.type)} | {self.e.name(np.asarray)}({any_of})[..., None])"
        return " | ".join(m for m in marks if m)


def _clean(ty: Type) -> Value:
    if isinstance(ty, Struct):
        return tuple(_clean(one) for one in ty.elements)
    return np.zeros(ty.count, np.bool_) if isinstance(ty, Vector) else np.bool_(False)


def taken(value: Value, some: Any, of: Rank) -> Value:
    """A value for some of the threads."""
    if isinstance(of, tuple):
        return tuple(taken(v, some, r) for v, r in zip(value, of, strict=True))
    return value[some] if value.ndim > of else value


def _part(number: int, values: Values, rows: Ints, some: Any, ranks: Ranks) -> Any:
    picked = (taken(v, some, r) for v, r in zip(values, ranks[number], strict=True))
    return number, rows[some], tuple(picked)


def branch(
    rows: Ints, condition: Value, yes: tuple[int, Values], no: tuple[int, Values], ranks: Ranks
) -> Parts:
    if not isinstance(condition, np.ndarray):
        number, values = yes if condition else no
        return ((number, rows, values),)
    holding = np.flatnonzero(condition)
    if holding.size == rows.size:
        return ((yes[0], rows, yes[1]),)
    if not holding.size:
        return ((no[0], rows, no[1]),)
    return (
        _part(*yes, rows, holding, ranks),
        _part(*no, rows, np.flatnonzero(~condition), ranks),
    )


def switch(
    rows: Ints,
    value: Value,
    cases: list[Value],
    goals: list[tuple[int, Values]],
    ranks: Ranks,
) -> Parts:
    default, *others = goals
    if not isinstance(value, np.ndarray):
        found = next((g for c, g in zip(cases, others, strict=True) if c == value), default)
        return ((found[0], rows, found[1]),)
    parts = []
    rest = np.ones(rows.size, np.bool_)
    for case, goal in zip(cases, others, strict=True):
        here = value == case
        rest &= ~here
        parts.append((goal, here))
    parts.append((default, rest))
    return tuple(
        _part(*goal, rows, np.flatnonzero(here), ranks) for goal, here in parts if here.any()
    )


def ended(ctx: Context, rows: Ints) -> Parts:
    ctx.returned[rows] = True
    return ()
