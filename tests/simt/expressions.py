"""Single instructions as Python expressions on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import access, arithmetic, values
from .instructions import Instruction
from .intrinsics import fence, intrinsic
from .lower import is_plain
from .parse import Module
from .syntax import Constant, Local, Operand
from .types import (
    BOOL,
    SIGNED,
    UNSIGNED,
    Float,
    Pointer,
    Struct,
    Vector,
    bits,
    dtype,
    element,
    rank,
)

_PLAIN = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "and": "{} & {}",
    "or": "{} | {}",
    "xor": "{} ^ {}",
    "fadd": "computed({} + {})",
    "fsub": "computed({} - {})",
    "fmul": "computed({} * {})",
    "fdiv": "computed({} / {})",
    "frem": "computed(fmod({}, {}))",
}
_OF_BOOLS = {"add": "{} ^ {}", "sub": "{} ^ {}", "mul": "{} & {}"} | {
    op: _PLAIN[op] for op in ("and", "or", "xor")
}
_ICMP = {
    "eq": "==",
    "ne": "!=",
    "gt": ">",
    "ge": ">=",
    "lt": "<",
    "le": "<=",
}
# True of a bool with a sign is less than false.
_SIGNED_BOOLS = {"slt": "{} & ~{}", "sgt": "~{} & {}", "sle": "{} | ~{}", "sge": "~{} | {}"}
_FCMP = {
    "oeq": "{0} == {1}",
    "ogt": "{0} > {1}",
    "oge": "{0} >= {1}",
    "olt": "{0} < {1}",
    "ole": "{0} <= {1}",
    "one": "({0} < {1}) | ({0} > {1})",
    "ord": "({0} == {0}) & ({1} == {1})",
    "ueq": "~(({0} < {1}) | ({0} > {1}))",
    "ugt": "~({0} <= {1})",
    "uge": "~({0} < {1})",
    "ult": "~({0} >= {1})",
    "ule": "~({0} > {1})",
    "une": "{0} != {1}",
    "uno": "({0} != {0}) | ({1} != {1})",
}
NAMES: dict[str, Any] = {
    "fmod": np.fmod,
    "fneg": arithmetic.fneg,
    "computed": arithmetic.computed,
    "fence": fence,
    **{f"U{n}": kind for n, kind in UNSIGNED.items()},
    **{f"I{n}": kind for n, kind in SIGNED.items()},
    **{
        name: getattr(values, name)
        for name in [
            "bitcast",
            "check",
            "check_shift",
            "double_to_bfloat",
            "extract",
            "insert",
            "insert_at",
            "offset32",
            "sdiv",
            "select",
            "select_lanes",
            "select_struct",
            "shuffle",
            "srem",
            "to_integer",
            "udiv",
            "urem",
        ]
    },
    **{name: getattr(access, name) for name in ["atomicrmw", "cmpxchg", "fresh", "load", "store"]},
}


class Expressions:
    """Expressions of one function; constants and the like get names in its namespace."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.namespace: dict[str, Any] = dict(NAMES)
        self.idents: dict[str, str] = {}
        self.functions: dict[str, str] = {}  # the Python names of functions that stay functions
        self.addresses: dict[Any, int] = {}  # of slots of allocas

    def name(self, value: Any, prefix: str = "c") -> str:
        """A name for an object."""
        name = f"{prefix}{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def ident(self, register: str) -> str:
        return self.idents.setdefault(register, f"v{len(self.idents)}")

    def arg(self, x: Operand) -> str:
        return self.ident(x.name) if isinstance(x, Local) else self.name(x.value)

    def expression(self, i: Instruction) -> str:
        """What an instruction computes, or does."""
        args = [self.arg(x) for x in i.operands]
        if i.op in _PLAIN and not (i.type == BOOL or element(i.type) == BOOL):
            return _PLAIN[i.op].format(*args)
        method: Callable[[Instruction, list[str]], str] | None
        method = getattr(self, f"_{i.op}", None) or self._grouped.get(i.op)
        if method is None:
            raise i.site.problem(f"{i.op} of {i.type} is not supported")
        return method(i, args)

    @property
    def _grouped(self) -> dict[str, Callable[[Instruction, list[str]], str]]:
        return {
            **dict.fromkeys(_OF_BOOLS, self._logic),
            **dict.fromkeys(("udiv", "sdiv", "urem", "srem"), self._divide),
            **dict.fromkeys(("shl", "lshr", "ashr"), self._shift),
            **dict.fromkeys(("sitofp", "uitofp"), self._to_float),
            **dict.fromkeys(("fptosi", "fptoui"), self._to_integer),
        }

    def _logic(self, i: Instruction, args: list[str]) -> str:
        return _OF_BOOLS[i.op].format(*args)

    def _where(self, i: Instruction, x: Operand | None = None) -> str:
        """Launch, threads, site and rank, for what may fail."""
        of = rank(x.type if x else i.type)
        return f"ctx, rows, {self.name(i.site)}, {of if isinstance(of, int) else 0}"

    def _fneg(self, i: Instruction, args: list[str]) -> str:
        return f"computed(fneg({args[0]}))"

    def _freeze(self, i: Instruction, args: list[str]) -> str:
        return args[0]

    def _divide(self, i: Instruction, args: list[str]) -> str:
        if element(i.type) == BOOL:
            raise i.site.problem(f"{i.op} of {i.type} is not supported")
        return f"{i.op}({self._where(i)}, {', '.join(args)})"

    def _shift(self, i: Instruction, args: list[str]) -> str:
        a, by = args
        if element(i.type) == BOOL:
            raise i.site.problem(f"{i.op} of {i.type} is not supported")
        size = bits(i.type) // 8
        amount = i.operands[1]
        known = isinstance(amount, Constant) and not np.any(amount.value >= bits(i.type))
        test = "" if known else f"check_shift({self._where(i)}, {by}, {bits(i.type)}) or "
        if i.op == "ashr":
            return f"{test}({a}.view(I{size}) >> {by}.view(I{size})).view(U{size})"
        return f"{test}{a} {'<<' if i.op == 'shl' else '>>'} {by}"

    def _icmp(self, i: Instruction, args: list[str]) -> str:
        a, b = args
        ty = i.operands[0].type
        if i.data[0] == "s" and element(ty) == BOOL:
            return _SIGNED_BOOLS[i.data].format(a, b)
        sign = _ICMP[i.data[-2:]]
        if i.data[0] == "s":
            size = bits(ty) // 8
            return f"{a}.view(I{size}) {sign} {b}.view(I{size})"
        return f"{a} {sign} {b}"

    def _fcmp(self, i: Instruction, args: list[str]) -> str:
        return _FCMP[i.data].format(*args)

    def _select(self, i: Instruction, args: list[str]) -> str:
        if isinstance(i.type, Struct):
            return f"select_struct({', '.join(args)})"
        wide = isinstance(i.operands[0].type, Vector)
        return f"select{'_lanes' if wide else ''}({', '.join(args)})"

    def _trunc(self, i: Instruction, args: list[str]) -> str:
        if element(i.type) == BOOL:
            return f"({args[0]} & 1) != 0"
        return f"{args[0]}.astype(U{bits(i.type) // 8})"

    def _zext(self, i: Instruction, args: list[str]) -> str:
        return f"{args[0]}.astype(U{bits(i.type) // 8})"

    def _sext(self, i: Instruction, args: list[str]) -> str:
        of, to = i.operands[0].type, bits(i.type) // 8
        if element(of) == BOOL:
            return f"(-{args[0]}.astype(I{to})).view(U{to})"
        return f"{args[0]}.view(I{bits(of) // 8}).astype(I{to}).view(U{to})"

    def _fpext(self, i: Instruction, args: list[str]) -> str:
        return f"computed({args[0]}.astype({self.name(dtype(i.type))}))"

    def _fptrunc(self, i: Instruction, args: list[str]) -> str:
        of = element(i.operands[0].type)
        if of == Float("double") and element(i.type) == Float("bfloat"):
            return f"computed(double_to_bfloat({args[0]}))"
        return f"computed({args[0]}.astype({self.name(dtype(i.type))}))"

    def _to_float(self, i: Instruction, args: list[str]) -> str:
        of = i.operands[0].type
        size = max(8, bits(of)) // 8
        text = args[0]
        if i.op == "sitofp":
            text += f".view(I{size})" if element(of) != BOOL else ".astype(I1).__neg__()"
        if element(i.type) == Float("bfloat"):
            if size == 8:
                raise i.site.problem(f"{i.op} of {of} to bfloat is not supported")
            return f"double_to_bfloat({text}.astype({self.name(np.dtype(np.float64))}))"
        return f"{text}.astype({self.name(dtype(i.type))})"

    def _to_integer(self, i: Instruction, args: list[str]) -> str:
        return f"to_integer({self._where(i)}, {args[0]}, {bits(i.type)}, {i.op == 'fptosi'})"

    def _bitcast(self, i: Instruction, args: list[str]) -> str:
        of, to = i.operands[0].type, i.type
        kind = self.name(dtype(to))
        if bits(of) == bits(to) and isinstance(of, Vector) == isinstance(to, Vector):
            return args[0] if dtype(of) == dtype(to) else f"{args[0]}.view({kind})"
        count = to.count if isinstance(to, Vector) else 0
        return f"bitcast({args[0]}, {rank(of)}, {kind}, {count})"

    def _ptrtoint(self, i: Instruction, args: list[str]) -> str:
        return args[0] if bits(i.type) == 64 else self._trunc(i, args)

    def _inttoptr(self, i: Instruction, args: list[str]) -> str:
        return f"{args[0]}.astype(U8)"

    def _addrspacecast(self, i: Instruction, args: list[str]) -> str:
        return args[0]

    def _getelementptr(self, i: Instruction, args: list[str]) -> str:
        offset, strides = i.data
        if not all(isinstance(x.type, Pointer) for x in i.operands[:1]):
            raise i.site.problem("vectors of pointers are not supported")
        text = args[0]
        for x, index, step in zip(i.operands[1:], args[1:], strides, strict=True):
            size = self.name(np.uint64(step))
            wide = bits(x.type) == 64
            text += f" + {index} * {size}" if wide else f" + offset32({index}, {size})"
        if offset:
            text += f" + {self.name(np.uint64(offset % 2**64))}"
        return text

    def _load(self, i: Instruction, args: list[str]) -> str:
        return f"load(ctx, rows, {args[0]}, {self._move(i, i.type, i.operands[0], i.data)})"

    def _store(self, i: Instruction, args: list[str]) -> str:
        moved = self._move(i, i.operands[0].type, i.operands[1], i.data)
        return f"store(ctx, rows, {args[0]}, {args[1]}, {moved})"

    def _atomicrmw(self, i: Instruction, args: list[str]) -> str:
        what, how = i.data
        moved = self._move(i, i.type, i.operands[0], how)
        return f"atomicrmw(ctx, rows, {what!r}, {args[0]}, {args[1]}, {moved})"

    def _cmpxchg(self, i: Instruction, args: list[str]) -> str:
        moved = self._move(i, i.operands[1].type, i.operands[0], i.data)
        return f"cmpxchg(ctx, rows, {', '.join(args)}, {moved})"

    def _move(self, i: Instruction, ty: Any, pointer: Operand, how: Any) -> str:
        assert isinstance(pointer.type, Pointer)
        return self.name(access.move(i.site, ty, how, pointer.type.space))

    def _fence(self, i: Instruction, args: list[str]) -> str:
        return f"fence(ctx, rows, {self.name(i.site)})"

    def _alloca(self, i: Instruction, args: list[str]) -> str:
        return f"fresh(ctx, rows, {self.name(np.uint64(self.addresses[i.data]))})"

    def _call(self, i: Instruction, args: list[str]) -> str:
        callee = self.module.functions.get(i.data)
        if callee is not None:
            assert is_plain(self.module, callee)
            return f"{self.functions[i.data]}({', '.join(('ctx', 'rows', *args))})"
        found = intrinsic(i)
        name = self.name(found.function, "f")
        if found.context:
            args = ["ctx", "rows", self.name(i.site), *args]
        return f"{name}({', '.join(args)})"

    def _extractelement(self, i: Instruction, args: list[str]) -> str:
        lane = self._lane(i)
        if lane is None:
            return f"extract(ctx, rows, {self.name(i.site)}, {args[0]}, {args[1]})"
        return f"{args[0]}.T[{lane}]"

    def _insertelement(self, i: Instruction, args: list[str]) -> str:
        lane = self._lane(i)
        if lane is None:
            return f"insert_at(ctx, rows, {self.name(i.site)}, {', '.join(args)})"
        return f"insert({args[0]}, {args[1]}, {lane})"

    def _lane(self, i: Instruction) -> int | None:
        index, vector = i.operands[-1], i.operands[0].type
        assert isinstance(vector, Vector)
        if not isinstance(index, Constant):
            return None
        if int(index.value) >= vector.count:
            raise i.site.problem("a lane that is not there")
        return int(index.value)

    def _shufflevector(self, i: Instruction, args: list[str]) -> str:
        picks = [pick or 0 for pick in i.data]
        return f"shuffle({args[0]}, {args[1]}, {self.name(np.array(picks))})"

    def _extractvalue(self, i: Instruction, args: list[str]) -> str:
        return f"{args[0]}[{i.data}]"

    def _insertvalue(self, i: Instruction, args: list[str]) -> str:
        whole, value = args
        return f"({whole}[:{i.data}] + ({value},) + {whole}[{i.data + 1}:])"
