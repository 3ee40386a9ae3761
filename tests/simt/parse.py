"""The text of a module as data: globals, functions, blocks, instructions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from .errors import IRProblem, Site
from .instructions import Instruction, parse_instruction
from .memory import CONSTANT, SHARED
from .syntax import Cursor, parse_constant, parse_type, plain
from .types import BOOL, Array, Pointer, Type, alignment, allocated, dtype, rounded_up

_GAP = 4096  # bytes between globals, so that nobody gets from one into the next unnoticed
_IGNORED = ("target", "source_filename", "attributes")
_LINKAGE = [
    "private",
    "internal",
    "external",
    "linkonce_odr",
    "weak_odr",
    "dso_local",
    "local_unnamed_addr",
    "unnamed_addr",
    "protected",
    "hidden",
]
_ATTRIBUTE = re.compile(r'"([^"]*)"\s*=\s*"([^"]*)"')


@dataclass
class Block:
    label: str
    instructions: list[Instruction] = field(default_factory=list)
    waits: str = ""  # the barrier before it: 'block' or 'cluster'


@dataclass
class Parameter:
    type: Type
    name: str
    align: int


@dataclass
class Function:
    name: str
    result: Type
    params: list[Parameter]
    blocks: list[Block]
    attributes: dict[str, str]  # those in quotes


@dataclass(frozen=True, eq=False)
class Variable:
    """A global: a constant table, or what the threads of a block share."""

    name: str
    address: int
    size: int  # 0: as many bytes as the launch says
    data: np.ndarray[Any, Any] | None  # None: shared


@dataclass(eq=False)
class Module:
    functions: dict[str, Function]
    variables: list[Variable]
    compiled: dict[str, Any] = field(default_factory=dict)  # kernels, by name


@lru_cache(maxsize=256)
def parse(text: str) -> Module:
    """A module; the same one for the same text."""
    lines = text.splitlines()
    variables = _variables(lines)
    addresses = {v.name: v.address for v in variables}
    functions: dict[str, Function] = {}
    starts = [n for n, line in enumerate(lines) if line.startswith("define")]
    inside = np.zeros(len(lines), bool)
    for start in starts:
        end = next((n for n in range(start, len(lines)) if lines[n].rstrip() == "}"), None)
        if end is None:
            raise IRProblem(f"line {start + 1}: a function without an end")
        inside[start : end + 1] = True
        function = _function(lines, start, end, addresses)
        if function.name in functions:
            raise IRProblem(f"line {start + 1}: @{function.name} is defined twice")
        functions[function.name] = function
    for n, line in enumerate(lines):
        word = line.split(maxsplit=1)[0] if line.strip() else ""
        known = word[:1] in ("", ";", "@", "!") or word in (*_IGNORED, "declare")
        if not known and not inside[n]:
            raise IRProblem(f"line {n + 1}: not understood: {line}")
    return Module(functions, variables)


def _variables(lines: list[str]) -> list[Variable]:
    found: list[Variable] = []
    free = {SHARED: SHARED, CONSTANT: CONSTANT}
    dynamic: list[str] = []
    for number, line in enumerate(lines):
        if not line.startswith("@"):
            continue
        try:
            name, ty, data, align = _variable(Cursor([(number + 1, line)], {}))
        except IRProblem as problem:
            raise IRProblem(f"{problem}\n  in line {number + 1}: {line[:200]}") from None
        if data is None and not allocated(ty):
            dynamic.append(name)
            continue
        window = SHARED if data is None else CONSTANT
        at = rounded_up(free[window], max(16, align))
        free[window] = at + allocated(ty) + _GAP
        found.append(Variable(name, at, allocated(ty), data))
    # Dynamic shared memory is one, whatever its names, and lies behind all else.
    last = rounded_up(free[SHARED], 256)
    return found + [Variable(name, last, 0, None) for name in dynamic]


def _variable(c: Cursor) -> tuple[str, Type, np.ndarray[Any, Any] | None, int]:
    """Name, type, data (None: shared, not initialised) and alignment."""
    name = plain(c.take())
    c.expect("=")
    external = c.token == "external"
    c.skip(*_LINKAGE)
    space = 0
    if c.token == "addrspace":
        c.tokens.insert(c.at, "ptr")  # read it as a pointer's
        pointer = parse_type(c)
        assert isinstance(pointer, Pointer)
        space = pointer.space
        c.skip(*_LINKAGE)
    kind = c.take()
    ty = parse_type(c)
    data = None
    if space == 3 and kind == "global":
        if not external and c.take() not in ("undef", "poison"):
            raise IRProblem("shared memory can't be initialised")
    elif kind == "constant" and not external:
        data = _table(c, ty)
    else:
        raise IRProblem(f"a {kind} of address space {space} is not supported")
    align = alignment(ty)
    while c.accept(","):
        if c.accept("align"):
            align = max(align, c.whole())
        else:
            raise IRProblem(f"{c.token!r} of a global is not supported")
    if c.token:
        raise IRProblem(f"not understood: {c.token!r}")
    return name, ty, data, align


def _table(c: Cursor, ty: Type) -> np.ndarray[Any, Any]:
    inner = ty.element if isinstance(ty, Array) else ty
    if isinstance(inner, Array) or inner == BOOL:
        raise IRProblem(f"a table of {inner} is not supported")
    constant = parse_constant(c, ty)
    if constant.poison is not None:
        raise IRProblem("poison in a table")
    return np.atleast_1d(np.asarray(constant.value, dtype(inner)))


def _function(lines: list[str], start: int, end: int, addresses: dict[str, int]) -> Function:
    head_end = next(n for n in range(start, end + 1) if lines[n].rstrip().endswith("{"))
    head = Cursor(((n + 1, lines[n]) for n in range(start, head_end + 1)), addresses)
    try:
        name, result, params = _head(head)
    except IRProblem as problem:
        raise IRProblem(f"{problem}\n  in line {start + 1}: {lines[start]}") from None
    attributes = dict(_ATTRIBUTE.findall("\n".join(lines[start : head_end + 1])))
    body = Cursor(((n + 1, lines[n]) for n in range(head_end + 1, end)), addresses)
    # Without a label the first block has the number that follows those of the parameters.
    first = str(sum(p.name.isdigit() for p in params))
    blocks: list[Block] = []
    while body.token:
        site = Site(name, body.line, lines[body.line - 1].strip())
        if body.token.endswith(":"):
            blocks.append(Block(body.take()[:-1].strip('"')))
            continue
        if not blocks:
            blocks.append(Block(first))
        elif blocks[-1].instructions and blocks[-1].instructions[-1].ends:
            raise site.problem("a block without a label")
        try:
            instruction = parse_instruction(body, site)
        except IRProblem as problem:
            raise site.problem(str(problem)) from None
        if body.token and body.line == body.lines[body.at - 1]:
            raise site.problem(f"not understood: {body.token!r}")
        blocks[-1].instructions.append(instruction)
    for block in blocks:
        if not block.instructions or not block.instructions[-1].ends:
            raise IRProblem(f"block %{block.label} of @{name} does not end")
    if len({block.label for block in blocks}) < len(blocks) or not blocks:
        raise IRProblem(f"labels of @{name}")
    return Function(name, result, params, blocks, attributes)


def _head(c: Cursor) -> tuple[str, Type, list[Parameter]]:
    c.expect("define")
    c.skip(*_LINKAGE, "ptx_kernel", "ptx_device", "fastcc", "noundef", "zeroext", "signext")
    result = parse_type(c)
    name = c.take()
    if name[:1] != "@":
        raise IRProblem(f"expected the name of a function, found {name!r}")
    c.expect("(")
    params: list[Parameter] = []
    while not c.accept(")"):
        params.append(_parameter(c, str(len(params))))
        c.accept(",")
    return plain(name), result, params


def _parameter(c: Cursor, name: str) -> Parameter:
    found = Parameter(parse_type(c), name, 1)
    while c.token not in (",", ")"):
        token = c.take()
        if token[:1] == "%":
            found = replace(found, name=plain(token))
        elif token == "align":
            found = replace(found, align=c.whole())
        elif token in ("byval", "sret", ""):
            raise IRProblem(f"{token!r} of a parameter is not supported")
        c.skip_group()
    return found
