"""Instructions: what each consists of, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .errors import IRProblem, Site
from .syntax import (
    Constant,
    Cursor,
    Operand,
    is_type,
    parse_operand,
    parse_type,
    plain,
    steps,
    typed_operand,
)
from .types import (
    BOOL,
    VOID,
    Float,
    Int,
    Pointer,
    Struct,
    Type,
    Vector,
    alignment,
    allocated,
    bits,
    element,
    stored,
    with_element,
)

_ORDERINGS = ("unordered", "monotonic", "acquire", "release", "acq_rel", "seq_cst")
_FAST = ("fast", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc")
_INTEGER = [
    "add",
    "sub",
    "mul",
    "udiv",
    "sdiv",
    "urem",
    "srem",
    "shl",
    "lshr",
    "ashr",
    "and",
    "or",
    "xor",
]
_FLOATING = ["fadd", "fsub", "fmul", "fdiv", "frem"]
_CASTS = [
    "trunc",
    "zext",
    "sext",
    "fpext",
    "fptrunc",
    "fptosi",
    "fptoui",
    "sitofp",
    "uitofp",
    "bitcast",
    "ptrtoint",
    "inttoptr",
    "addrspacecast",
]
_COMPARED = {
    "icmp": ["eq", "ne", "ugt", "uge", "ult", "ule", "sgt", "sge", "slt", "sle"],
    "fcmp": [
        "oeq",
        "ogt",
        "oge",
        "olt",
        "ole",
        "one",
        "ord",
        "ueq",
        "ugt",
        "uge",
        "ult",
        "ule",
        "une",
        "uno",
    ],
}
_RMW = ["xchg", "add", "sub", "and", "or", "xor", "max", "min", "umax", "umin", "fadd", "uinc_wrap"]
_ATTRIBUTES = [
    "noundef",
    "nocapture",
    "readonly",
    "readnone",
    "zeroext",
    "signext",
    "inreg",
    "nonnull",
]


@dataclass(frozen=True, eq=False)
class Instruction:
    """One instruction; `data` is what it has beside operands: see the functions below."""

    op: str
    result: str  # the name of what it defines, or ''
    type: Type  # of that
    operands: tuple[Operand, ...]
    site: Site
    data: Any = None

    @property
    def ends(self) -> bool:
        """It is the last of a block."""
        return self.op in ("br", "switch", "ret", "unreachable")


@dataclass(frozen=True)
class Access:
    """How memory is accessed."""

    align: int
    order: str = ""  # of an atomic access; 'monotonic' for a volatile one, which PTX treats alike


@dataclass(frozen=True)
class Slot:
    """Memory of one alloca; instructions that were put in place twice share it."""

    function: str
    name: str
    size: int
    align: int


def parse_instruction(c: Cursor, site: Site) -> Instruction:
    result = ""
    if c.token[:1] == "%":
        result = plain(c.take())
        c.expect("=")
    c.skip("tail", "musttail", "notail")
    op = c.take()
    reader = _READERS.get(op)
    if reader is None:
        raise IRProblem(f"no instruction {op!r} is known")
    made = reader(c, op, result, site)
    while c.accept(","):  # !invariant.load !0 and the like
        if c.take()[:1] != "!" or c.take()[:1] != "!":
            raise IRProblem("expected metadata")
    if (made.type == VOID) != (not result) and op not in ("call", "atomicrmw", "cmpxchg"):
        raise IRProblem(f"{op} {'gives nothing' if result else 'without a name'}")
    return made


def _integer(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    c.skip("nsw", "nuw", "exact", "disjoint")
    a, b = _pair(c)
    if not isinstance(element(a.type), Int):
        raise IRProblem(f"{op} of {a.type}")
    return Instruction(op, result, a.type, (a, b), site)


def _floating(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    _no_flags(c)
    a, b = _pair(c)
    if not isinstance(element(a.type), Float):
        raise IRProblem(f"{op} of {a.type}")
    return Instruction(op, result, a.type, (a, b), site)


def _fneg(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    _no_flags(c)
    a = typed_operand(c)
    return Instruction(op, result, a.type, (a,), site)


def _freeze(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    a = typed_operand(c)
    return Instruction(op, result, a.type, (a,), site)


def _compare(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    """data: the predicate"""
    _no_flags(c)
    c.skip("samesign")
    predicate = c.take()
    if predicate not in _COMPARED[op]:
        raise IRProblem(f"no predicate {predicate!r} is known")
    a, b = _pair(c)
    if isinstance(element(a.type), Float) != (op == "fcmp"):
        raise IRProblem(f"{op} of {a.type}")
    return Instruction(op, result, with_element(a.type, BOOL), (a, b), site, predicate)


def _select(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    _no_flags(c)
    condition, a, b = _several(c, 3)
    if a.type != b.type or element(condition.type) != BOOL:
        raise IRProblem("types of a select")
    return Instruction(op, result, a.type, (condition, a, b), site)


def _cast(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    _no_flags(c)
    c.skip("nneg", "nuw", "nsw")
    a = typed_operand(c)
    c.expect("to")
    ty = parse_type(c)
    if op == "bitcast":
        count = (a.type.count if isinstance(a.type, Vector) else 1) * bits(a.type)
        if count != (ty.count if isinstance(ty, Vector) else 1) * bits(ty):
            raise IRProblem(f"bitcast of {a.type} to {ty}")
    elif with_element(a.type, element(ty)) != ty:
        raise IRProblem(f"{op} of {a.type} to {ty}")
    return Instruction(op, result, ty, (a,), site)


def _getelementptr(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    """data: the constant part, and bytes of one step of each index among the operands"""
    c.skip("inbounds", "nuw", "nusw")
    source = parse_type(c)
    c.expect(",")
    base = typed_operand(c)
    indices = []
    while c.token == "," and c.tokens[c.at + 1][:1] != "!":
        c.take()
        indices.append(typed_operand(c))
    if not isinstance(base.type, Pointer):
        raise IRProblem(f"getelementptr of {base.type}")
    if not all(isinstance(i.type, Int) and i.type.bits >= 8 for i in indices):
        raise IRProblem("an index that is no integer")
    offset, strides = steps(source, indices)
    operands = (base, *(index for _, index in strides))
    return Instruction(
        op, result, base.type, operands, site, (offset, tuple(step for step, _ in strides))
    )


def _load(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    """data: the access"""
    atomic, volatile = c.accept("atomic"), c.accept("volatile")
    ty = parse_type(c)
    c.expect(",")
    pointer = typed_operand(c)
    return Instruction(op, result, ty, (pointer,), site, _access(c, ty, pointer, atomic, volatile))


def _store(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    """data: the access"""
    atomic, volatile = c.accept("atomic"), c.accept("volatile")
    value, pointer = _several(c, 2)
    access = _access(c, value.type, pointer, atomic, volatile)
    return Instruction(op, result, VOID, (value, pointer), site, access)


def _access(c: Cursor, ty: Type, pointer: Operand, atomic: str, volatile: str) -> Access:
    _need_pointer(pointer)
    order = _ordering(c) if atomic else "monotonic" if volatile else ""
    return Access(_align(c, ty), order)


def _align(c: Cursor, ty: Type) -> int:
    """As stated; of scalars at least their size, of vectors an element's."""
    align = alignment(ty)
    if c.token == "," and c.tokens[c.at + 1] == "align":
        c.at += 2
        align = max(c.whole(), stored(element(ty)))
    return align


def _alloca(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    """data: the slot"""
    ty = parse_type(c)
    count, align = 1, alignment(ty)
    while c.token == "," and c.tokens[c.at + 1][:1] != "!":
        c.take()
        if c.accept("align"):
            align = max(align, c.whole())
        elif c.token == "addrspace":
            raise IRProblem("alloca in another address space")
        else:
            given = typed_operand(c)
            if not isinstance(given, Constant):
                raise IRProblem("alloca of a size that is no constant")
            count = int(given.value)
    slot = Slot(site.function, result, count * allocated(ty), align)
    return Instruction(op, result, Pointer(0), (), site, slot)


def _phi(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    """data: the labels from which the operands come"""
    _no_flags(c)
    ty = parse_type(c)
    operands, labels = [], []
    while True:
        c.expect("[")
        operands.append(parse_operand(c, ty))
        c.expect(",")
        labels.append(plain(c.take()))
        c.expect("]")
        if c.token != "," or c.tokens[c.at + 1] != "[":
            break
        c.take()
    return Instruction(op, result, ty, tuple(operands), site, tuple(labels))


def _br(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    """data: the labels; with a condition that for true and that for false"""
    if c.token == "label":
        return Instruction(op, result, VOID, (), site, (_label(c),))
    condition = typed_operand(c)
    if condition.type != BOOL:
        raise IRProblem(f"a branch on {condition.type}")
    c.expect(",")
    yes = _label(c)
    c.expect(",")
    return Instruction(op, result, VOID, (condition,), site, (yes, _label(c)))


def _switch(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    """operands: the value, and constants; data: the default label, and those of the constants"""
    value = typed_operand(c)
    c.expect(",")
    operands, labels = [value], [_label(c)]
    c.expect("[")
    while not c.accept("]"):
        operands.append(typed_operand(c))
        if not isinstance(operands[-1], Constant) or operands[-1].type != value.type:
            raise IRProblem("a case that is no constant")
        c.expect(",")
        labels.append(_label(c))
    return Instruction(op, result, VOID, tuple(operands), site, tuple(labels))


def _ret(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    ty = parse_type(c)
    operands = () if ty == VOID else (parse_operand(c, ty),)
    return Instruction(op, result, VOID, operands, site)


def _unreachable(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    return Instruction(op, result, VOID, (), site)


def _call(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    """data: the name of what is called, or the text of inline assembly after 'asm '"""
    _no_flags(c)
    c.skip("fastcc", "ptx_device")
    while not is_type(c.token):
        _attribute(c)
    ty = parse_type(c)
    if c.accept("asm"):
        c.skip("sideeffect", "alignstack", "inteldialect", "unwind")
        name = "asm " + c.take().strip('"')
        c.expect(",")
        c.take()  # constraints
    else:
        if c.token[:1] != "@":
            raise IRProblem(f"a call of {c.token!r}")
        name = plain(c.take())
    operands = []
    c.expect("(")
    while not c.accept(")"):
        given = parse_type(c)
        while c.token in _ATTRIBUTES or c.token == "align":
            _attribute(c)
        operands.append(parse_operand(c, given))
        c.accept(",")
    line = c.lines[c.at - 1]
    while c.line == line and c.token and c.token != ",":  # #0, convergent, nounwind
        if c.token[:1] != "#" and c.token not in ("convergent", "nounwind", "noinline"):
            raise IRProblem(f"not understood: {c.token!r}")
        c.take()
    if ty == VOID and result:
        raise IRProblem("a call that gives nothing")
    return Instruction(op, result, ty, tuple(operands), site, name)


def _attribute(c: Cursor) -> None:
    if c.accept("align"):
        c.whole()
    elif c.take() not in _ATTRIBUTES:
        raise IRProblem(f"not understood: {c.tokens[c.at - 1]!r}")


def _extractelement(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    vector, index = _several(c, 2)
    if not isinstance(vector.type, Vector):
        raise IRProblem(f"extractelement of {vector.type}")
    return Instruction(op, result, vector.type.element, (vector, index), site)


def _insertelement(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    vector, value, index = _several(c, 3)
    if not isinstance(vector.type, Vector) or vector.type.element != value.type:
        raise IRProblem(f"insertelement of {value.type} into {vector.type}")
    return Instruction(op, result, vector.type, (vector, value, index), site)


def _shufflevector(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    """data: for each lane of the result one of both operands, or None: poison"""
    a, b, mask = _several(c, 3)
    if not isinstance(a.type, Vector) or a.type != b.type or not isinstance(mask, Constant):
        raise IRProblem("operands of a shufflevector")
    assert isinstance(mask.type, Vector)
    poison = mask.poison if mask.poison is not None else [False] * mask.type.count
    picks = tuple(
        None if dead else int(lane) for lane, dead in zip(mask.value, poison, strict=True)
    )
    if any(pick is not None and pick >= 2 * a.type.count for pick in picks):
        raise IRProblem("a lane that is not there")
    ty = Vector(mask.type.count, a.type.element)
    return Instruction(op, result, ty, (a, b), site, picks)


def _extractvalue(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    """data: the field"""
    whole = typed_operand(c)
    c.expect(",")
    field = c.whole()
    if not isinstance(whole.type, Struct) or field >= len(whole.type.elements):
        raise IRProblem(f"extractvalue of {whole.type}")
    return Instruction(op, result, whole.type.elements[field], (whole,), site, field)


def _insertvalue(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    """data: the field"""
    whole, value = _several(c, 2)
    c.expect(",")
    field = c.whole()
    if not isinstance(whole.type, Struct) or whole.type.elements[field] != value.type:
        raise IRProblem(f"insertvalue of {value.type} into {whole.type}")
    return Instruction(op, result, whole.type, (whole, value), site, field)


def _atomicrmw(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    """data: what is done, and the access"""
    c.skip("volatile")
    kind = c.take()
    if kind not in _RMW:
        raise IRProblem(f"atomicrmw {kind} is not supported")
    pointer, value = _several(c, 2)
    _need_pointer(pointer)
    if isinstance(value.type, Vector) or isinstance(value.type, Float) != (kind == "fadd"):
        raise IRProblem(f"atomicrmw {kind} of {value.type}")
    order = _ordering(c)
    access = Access(_align(c, value.type), order)
    return Instruction(op, result, value.type, (pointer, value), site, (kind, access))


def _cmpxchg(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    """data: the access"""
    c.skip("weak", "volatile")
    pointer, expected, new = _several(c, 3)
    _need_pointer(pointer)
    if expected.type != new.type or not isinstance(new.type, Int | Pointer):
        raise IRProblem(f"cmpxchg of {expected.type} and {new.type}")
    order = _ordering(c)
    _ordering(c)  # that of failure is no stronger
    access = Access(_align(c, new.type), order)
    ty = Struct((new.type, BOOL))
    return Instruction(op, result, ty, (pointer, expected, new), site, access)


def _fence(c: Cursor, op: str, result: str, site: Site) -> Instruction:
    _ordering(c)
    return Instruction(op, result, VOID, (), site)


def _pair(c: Cursor) -> tuple[Operand, Operand]:
    """Two operands of one type, which stands once."""
    a = typed_operand(c)
    c.expect(",")
    return a, parse_operand(c, a.type)


def _several(c: Cursor, count: int) -> list[Operand]:
    found = [typed_operand(c)]
    for _ in range(count - 1):
        c.expect(",")
        found.append(typed_operand(c))
    return found


def _label(c: Cursor) -> str:
    c.expect("label")
    return plain(c.take())


def _ordering(c: Cursor) -> str:
    if c.accept("syncscope"):
        c.skip_group()
    order = c.take()
    if order not in _ORDERINGS:
        raise IRProblem(f"no ordering {order!r} is known")
    return order


def _no_flags(c: Cursor) -> None:
    if c.token in _FAST:
        raise IRProblem(f"the flag {c.token!r} lets results differ: not supported")


def _need_pointer(pointer: Operand) -> None:
    if not isinstance(pointer.type, Pointer):
        raise IRProblem(f"{pointer.type} as an address")


_Reader = Callable[[Cursor, str, str, Site], Instruction]
_READERS: dict[str, _Reader] = {
    **dict.fromkeys(_INTEGER, _integer),
    **dict.fromkeys(_FLOATING, _floating),
    **dict.fromkeys(_COMPARED, _compare),
    **dict.fromkeys(_CASTS, _cast),
    "fneg": _fneg,
    "freeze": _freeze,
    "select": _select,
    "getelementptr": _getelementptr,
    "load": _load,
    "store": _store,
    "alloca": _alloca,
    "phi": _phi,
    "br": _br,
    "switch": _switch,
    "ret": _ret,
    "unreachable": _unreachable,
    "call": _call,
    "extractelement": _extractelement,
    "insertelement": _insertelement,
    "shufflevector": _shufflevector,
    "extractvalue": _extractvalue,
    "insertvalue": _insertvalue,
    "atomicrmw": _atomicrmw,
    "cmpxchg": _cmpxchg,
    "fence": _fence,
}
