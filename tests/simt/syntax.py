"""Tokens of LLVM IR, and what all statements have in common: types, constants, operands."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from .errors import IRProblem
from .types import (
    BOOL,
    FLOATS,
    VOID,
    WIDTHS,
    Array,
    Float,
    Int,
    Pointer,
    Struct,
    Type,
    Value,
    Vector,
    allocated,
    dtype,
    field_offset,
    lanes,
)

# Whatever is none of these is a token of one character, which no statement expects.
_TOKENS = re.compile(
    r"""
      ;.*                                     # a comment
    | c?"[^"]*":?                             # text, or a label in quotes
    | [%@](?:"[^"]*"|[-\w$.]+)                # names
    | !\{[^{}]*\} | ![-\w$.]*                 # metadata
    | \#\d+                                   # attributes
    | [-\w$.]+:                               # labels
    | -?\d+\.\d*(?:[eE][-+]?\d+)?             # floats
    | -?\w[\w.$]*                             # numbers, types, opcodes
    | \.\.\.
    | \S
    """,
    re.VERBOSE,
)
_INTEGER = re.compile(r"-?\d+$")
_TYPE_WORDS = {name: Float(name) for name in FLOATS}
_CASTS = ("addrspacecast", "bitcast", "inttoptr", "ptrtoint")

# What poison is while it does no harm: a pattern to know it by.
_PATTERN = {1: 0xA5, 2: 0xA5A5, 4: 0xA5A5A5A5, 8: 0xA5A5A5A5A5A5A5A5}


@dataclass(frozen=True)
class Local:
    """An operand that an instruction or a parameter defines."""

    type: Type
    name: str


@dataclass(frozen=True, eq=False)
class Constant:
    """An operand that is known; `poison` says which lanes are poison, None that none is."""

    type: Type
    value: Value
    poison: Value = None


Operand: TypeAlias = Local | Constant


class Cursor:
    """A position in the tokens of some lines."""

    def __init__(self, lines: Iterable[tuple[int, str]], addresses: dict[str, int]) -> None:
        self.tokens: list[str] = []
        self.lines: list[int] = []
        for number, line in lines:
            found = [token for token in _TOKENS.findall(line) if not token.startswith(";")]
            self.tokens += found
            self.lines += [number] * len(found)
        self.tokens.append("")  # the end
        self.lines.append(self.lines[-1] + 1 if self.lines else 0)
        self.at = 0
        self.addresses = addresses  # of globals

    @property
    def token(self) -> str:
        return self.tokens[self.at]

    @property
    def line(self) -> int:
        return self.lines[self.at]

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def accept(self, *tokens: str) -> str:
        """Take the next token if it is one of these."""
        return self.take() if self.token in tokens else ""

    def expect(self, token: str) -> None:
        if self.take() != token:
            raise IRProblem(f"expected {token!r}, found {self.tokens[self.at - 1]!r}")

    def skip(self, *tokens: str) -> None:
        """Pass flags that change nothing here."""
        while self.token in tokens:
            self.at += 1

    def skip_group(self) -> None:
        """Pass a group in parentheses, if there is one."""
        if self.accept("("):
            depth = 1
            while depth:
                depth += {"(": 1, ")": -1, "": -depth}.get(self.take(), 0)

    def whole(self) -> int:
        token = self.take()
        if not _INTEGER.match(token):
            raise IRProblem(f"expected a number, found {token!r}")
        return int(token)


def plain(token: str) -> str:
    """A name without its sign and quotes."""
    return token[1:].strip('"')


def is_type(token: str) -> bool:
    return (
        token in _TYPE_WORDS or token in ("ptr", "void", "<", "[", "{") or _int(token) is not None
    )


def _int(token: str) -> Int | None:
    if token[:1] == "i" and token[1:].isdigit():
        if int(token[1:]) not in WIDTHS:
            raise IRProblem(f"{token} is not supported")
        return Int(int(token[1:]))
    return None


def parse_type(c: Cursor) -> Type:
    token = c.take()
    if token in _TYPE_WORDS:
        return _TYPE_WORDS[token]
    if token == "void":
        return VOID
    if token == "ptr":
        return Pointer(_space(c))
    if token in ("<", "["):
        count = c.whole()
        c.expect("x")
        inner = parse_type(c)
        c.expect({"<": ">", "[": "]"}[token])
        return Vector(count, inner) if token == "<" else Array(count, inner)
    if token == "{":
        elements = [parse_type(c)]
        while c.accept(","):
            elements.append(parse_type(c))
        c.expect("}")
        return Struct(tuple(elements))
    number = _int(token)
    if number is None:
        raise IRProblem(f"expected a type, found {token!r}")
    return number


def _space(c: Cursor) -> int:
    if not c.accept("addrspace"):
        return 0
    c.expect("(")
    space = c.whole()
    c.expect(")")
    return space


def parse_operand(c: Cursor, ty: Type) -> Operand:
    if c.token[:1] == "%":
        return Local(ty, plain(c.take()))
    return parse_constant(c, ty)


def typed_operand(c: Cursor) -> Operand:
    return parse_operand(c, parse_type(c))


def parse_constant(c: Cursor, ty: Type) -> Constant:
    token = c.token
    if token in ("poison", "undef"):
        c.take()
        return poison(ty)
    if token == "zeroinitializer":
        c.take()
        return zero(ty)
    if token[:1] == "@":
        return Constant(ty, np.uint64(_address(c, plain(c.take()))))
    if token == "splat":
        c.take()
        c.expect("(")
        one = parse_constant(c, parse_type(c))
        c.expect(")")
        return Constant(ty, np.full(lanes(ty), one.value, dtype(ty)))
    if token in ("<", "["):
        return _listed(c, ty)
    if token == "{":
        return _fields(c, ty)
    if token in (*_CASTS, "getelementptr"):
        return Constant(ty, np.uint64(_address_expression(c)))
    return Constant(ty, _scalar(c.take(), ty))


def _listed(c: Cursor, ty: Type) -> Constant:
    """<i32 0, i32 1>, or of an array, [i32 0, i32 1]."""
    close = {"<": ">", "[": "]"}[c.take()]
    found = [parse_constant(c, parse_type(c))]
    while c.accept(","):
        found.append(parse_constant(c, parse_type(c)))
    c.expect(close)
    if not isinstance(ty, Vector | Array) or len(found) != ty.count:
        raise IRProblem(f"{len(found)} elements of {ty}")
    if any(one.type != ty.element for one in found):
        raise IRProblem(f"an element that is no {ty.element}")
    values = np.array([one.value for one in found])
    if all(one.poison is None for one in found):
        return Constant(ty, values)
    return Constant(ty, values, np.array([one.poison is not None for one in found]))


def _fields(c: Cursor, ty: Type) -> Constant:
    c.expect("{")
    found = [parse_constant(c, parse_type(c))]
    while c.accept(","):
        found.append(parse_constant(c, parse_type(c)))
    c.expect("}")
    if any(one.poison is not None for one in found):
        raise IRProblem("poison in a constant struct")
    return Constant(ty, tuple(one.value for one in found))


def _address(c: Cursor, name: str) -> int:
    try:
        return c.addresses[name]
    except KeyError:
        raise IRProblem(f"no global @{name}") from None


def _address_expression(c: Cursor) -> int:
    """A constant expression that gives an address: casts keep it, as addresses have tags."""
    if c.take() != "getelementptr":
        c.expect("(")
        inner = parse_constant(c, parse_type(c))
        c.expect("to")
        parse_type(c)
        c.expect(")")
        return int(inner.value)
    c.skip("inbounds", "nuw", "nusw")
    c.expect("(")
    source = parse_type(c)
    c.expect(",")
    base = parse_constant(c, parse_type(c))
    indices = []
    while c.accept(","):
        indices.append(parse_constant(c, parse_type(c)))
    c.expect(")")
    offset, strides = steps(source, list(indices))
    if strides:
        raise IRProblem("an index that is no constant")
    return (int(base.value) + offset) % 2**64


def steps(ty: Type, indices: list[Any]) -> tuple[int, list[tuple[int, Operand]]]:
    """What a getelementptr adds: a constant, and indices with the bytes of a step of each."""
    offset = 0
    strides: list[tuple[int, Operand]] = []
    for depth, index in enumerate(indices):
        if depth:
            if isinstance(ty, Struct):
                if not isinstance(index, Constant):
                    raise IRProblem("the field of a struct must be a constant")
                offset += field_offset(ty, int(index.value))
                ty = ty.elements[int(index.value)]
                continue
            if not isinstance(ty, Array | Vector):
                raise IRProblem(f"an index into {ty}")
            ty = ty.element
        if isinstance(index, Constant):
            if index.poison is not None:
                raise IRProblem("poison as an index")
            offset += signed(index) * allocated(ty)
        else:
            strides.append((allocated(ty), index))
    return offset, strides


def signed(constant: Constant) -> int:
    value, width = int(constant.value), dtype(constant.type).itemsize * 8
    return value - 2**width if value >> (width - 1) else value


def zero(ty: Type) -> Constant:
    if isinstance(ty, Struct):
        return Constant(ty, tuple(zero(one).value for one in ty.elements))
    if isinstance(ty, Array):
        return Constant(ty, np.zeros(ty.count, dtype(ty.element)))
    value = np.zeros(lanes(ty), dtype(ty))
    return Constant(ty, value if isinstance(ty, Vector) else value[0])


def poison(ty: Type) -> Constant:
    if isinstance(ty, Struct):
        parts = [poison(one) for one in ty.elements]
        return Constant(ty, tuple(p.value for p in parts), tuple(p.poison for p in parts))
    size = dtype(ty).itemsize
    raw = np.full(lanes(ty), _PATTERN[size] if dtype(ty) != np.bool_ else 1, f"u{size}")
    value, all_of_it = raw.view(dtype(ty)), np.ones(lanes(ty), np.bool_)
    if isinstance(ty, Vector):
        return Constant(ty, value, all_of_it)
    return Constant(ty, value[0], all_of_it[0])


def _scalar(token: str, ty: Type) -> Value:
    if isinstance(ty, Int):
        return _whole(token, ty)
    if isinstance(ty, Float):
        return _float(token, ty)
    if isinstance(ty, Pointer) and token == "null":
        return np.uint64(0)
    raise IRProblem(f"{token!r} is no constant of {ty}")


def _whole(token: str, ty: Int) -> Value:
    if ty == BOOL and token in ("true", "false"):
        return np.bool_(token == "true")
    if not _INTEGER.match(token):
        raise IRProblem(f"{token!r} is no constant of {ty}")
    value = int(token)
    if not -(2**ty.bits) // 2 <= value < 2**ty.bits:
        raise IRProblem(f"{token} does not fit {ty}")
    return np.array(value % 2**ty.bits).astype(dtype(ty))[()]


def _float(token: str, ty: Float) -> Value:
    """LLVM writes float and double as the bits of a double, the short ones as their own bits."""
    kind = dtype(ty)
    own = {"half": "0xH", "bfloat": "0xR"}.get(ty.name)
    if own and token.startswith(own):
        return np.uint16(int(token[3:], 16)).view(kind)
    try:
        if token.startswith("0x"):
            wide = np.uint64(int(token[2:], 16)).view(np.float64)
        else:
            wide = np.float64(token)
    except ValueError:
        raise IRProblem(f"{token!r} is no constant of {ty}") from None
    with np.errstate(all="ignore"):
        value = wide.astype(kind)
        if value.astype(np.float64) != wide and wide == wide:
            raise IRProblem(f"{token} is not exact in {ty}")
    return value
