"""Legal kernels: the instructions that a printer meets, as a specification, and its checker.

A kernel as it is lowered says what NumPy means: `mod` by zero gives 0, `max` keeps NaN, complex
numbers and sixteen-bit floats are dtypes like others, `tanh` is one instruction. The passes of
`kernel/passes` make it legal: every edge is spelled out, and what is left is below. A printer of
legal kernels knows nothing of NumPy.

Values are of these dtypes: bool, i8 to i64, u8 to u64, f32 and f64. Complex numbers and sixteen-bit
floats are left in buffers alone:

- of a complex buffer a load takes one part, and a store writes both;
- of a buffer of f16 or bf16 a load takes the bits, as u16, and a store writes them.

The sign of an integer dtype says which division, shift, comparison and conversion is meant.
Floats follow IEEE 754, rounding to nearest, subnormals kept, nothing reassociated, nothing
contracted: where a product goes unrounded into a sum there is an `fma`. Any NaN that is computed
stands for any other; `neg`, `abs`, `select`, `bitcast`, loads and stores keep bits.
"""

from __future__ import annotations

from tenfold.errors import GraphError
from tenfold.frozen import frozen
from tenfold.kernel import maths
from tenfold.kernel.ir.kernel import REDUCED, SCRATCH, Instruction, Kernel

BOOL, ANY = "b", "biuf"  # kinds of dtypes: bool, signed, unsigned, float
SAME = "="  # the dtype of the operands, which all have one


@frozen
class Rule:
    """What one instruction takes and gives: for each operand the kinds of dtypes, and of the
    result; SAME stands for the dtype of the operand before, or of all operands."""

    operands: tuple[str, ...]
    result: str
    meaning: str


def _rule(operands: str, result: str, meaning: str) -> Rule:
    return Rule(tuple(operands.split()), result, meaning)


# Undefined means: a printer may print what gives any value, or ends the process. The passes see to
# it that no lane that is executed comes there, whatever the kernel is given.
ELEMENTWISE = {
    "add": _rule("iuf =", SAME, "integers wrap"),
    "sub": _rule("iuf =", SAME, "integers wrap"),
    "mul": _rule("iuf =", SAME, "integers wrap"),
    "div": _rule("iuf =", SAME, "integers: towards zero; by 0, and the least by -1, undefined"),
    "rem": _rule("iu =", SAME, "the remainder of div; undefined where div is"),
    "fma": _rule("f = =", SAME, "a * b + c, rounded once"),
    "neg": _rule("f", SAME, "the sign's bit changed, of a NaN too"),
    "abs": _rule("f", SAME, "the sign's bit cleared, of a NaN too"),
    "sqrt": _rule("f", SAME, "correctly rounded"),
    "floor": _rule("f", SAME, "the greatest whole number not above"),
    "ceil": _rule("f", SAME, "the least whole number not below; -0.0 for (-1, 0)"),
    "trunc": _rule("f", SAME, "the whole number next to it towards zero, with its sign"),
    "round": _rule("f", SAME, "the nearest whole number, the even one of two, with its sign"),
    "min": _rule("iu =", SAME, "the lesser"),
    "max": _rule("iu =", SAME, "the greater"),
    "and": _rule("biu =", SAME, "bit by bit"),
    "or": _rule("biu =", SAME, "bit by bit"),
    "xor": _rule("biu =", SAME, "bit by bit"),
    "shl": _rule("iu =", SAME, "undefined unless 0 <= b < the width"),
    "shr": _rule("iu =", SAME, "signed: copies of the sign come in; undefined as for shl"),
    "popcount": _rule("iu", SAME, "how many bits are set"),
    "eq": _rule("biuf =", BOOL, "of a NaN false"),
    "ne": _rule("biuf =", BOOL, "of a NaN true"),
    "lt": _rule("iuf =", BOOL, "of a NaN false"),
    "le": _rule("iuf =", BOOL, "of a NaN false"),
    "gt": _rule("iuf =", BOOL, "of a NaN false"),
    "ge": _rule("iuf =", BOOL, "of a NaN false"),
    "select": _rule("b biuf =", "1", "b where a holds, else c; both are computed"),
    "cast": _rule(
        "biuf",
        "biuf",
        "bool: 0 or 1; integers to shorter ones: the low bits, to longer ones by their sign; to "
        "floats and between floats: rounded to nearest; floats to integers: towards zero, "
        "undefined where that does not fit; to bool: only from integers, the lowest bit",
    ),
    "bitcast": _rule("iuf", "iuf", "the same bits, in a dtype of the same size"),
    "from_half": _rule("u", "f32", "bits of an f16 to the f32 of that value; NaN keeps its sign"),
    "to_half": _rule("f", "u16", "f32 to the nearest f16, as its bits; NaN keeps its sign"),
    "from_bfloat": _rule("u", "f32", "bits of a bf16 to the f32 of that value, of a NaN too"),
    "to_bfloat": _rule("f", "u16", "f32 to the nearest bf16, as its bits; NaN gives any NaN"),
}

# The others, as in `kernel/ir/kernel`, with these differences:
#   load    attr (buffer, part)   part 0 or 1 of a complex buffer, else 0; f16 and bf16 as u16
#   param   attr (number, part)   likewise
#   lookup  attr (raw bytes,)     args (position,)  an element of a constant table; position i32,
#                                 undefined outside it
#   call    attr (function,)      args              a function of `kernel/maths` that gives this
#                                                   dtype: a list of legal instructions, to be
#                                                   printed once
#   rarely  attr (function,)      args (condition, value, …)  function(…) where the condition
#                                 holds, else the value; a printer may skip the call where no lane
#                                 needs it
#   reduce  attr (kind, *axes)    kinds below
#   state   attr (number,)        as before
# A store writes what lies in memory: bits of f16 and bf16 as u16, of complex numbers the real part
# and a `second`. What an update makes of what is there and what is given is a list of legal
# instructions, too (`kernel/passes/legalise.update`).
OTHERS = (
    "load",
    "const",
    "param",
    "index",
    "inside",
    "lookup",
    "call",
    "rarely",
    "reduce",
    "state",
)

# How a value joins what is held, and what is held at first; sums of floats in the order of the
# kernel's fold, the others in any order.
REDUCTIONS = {
    "sum": "held + a",
    "dot": "fma(a, b, held), in the order of a sum; the fold adds up what is held",
    "prod": "held * a; of two operands, complex numbers as pairs: re * a - im * b and re * b + "
    "im * a, each rounded as it stands; state 1 is the imaginary part",
    "fused prod": "of two operands: fma(re, a, -(im * b)) and fma(re, b, im * a)",
    "min": "a < held, or a is NaN ? a : held, beginning with inf or the greatest integer",
    "max": "a > held, or a is NaN ? a : held, beginning with -inf or the least integer",
    "any": "held | a",
    "all": "held & a",
    "argmin": "a, b: a and its position b where a < held, or a is NaN and held is not; among "
    "equals, and among NaN, the least position; state 1 is the position",
    "argmax": "as argmin, the greatest",
}


def kind(dtype: str) -> str:
    return BOOL if dtype == "bool" else dtype[0]


def in_memory(dtype: str) -> list[str]:
    """The dtypes of what a load takes of a buffer, and a store writes."""
    if dtype in ("c64", "c128"):
        return ["f32" if dtype == "c64" else "f64"] * 2
    return ["u16" if dtype in ("f16", "bf16") else dtype]


def check(kernel: Kernel) -> None:
    """Raise unless a kernel is legal."""
    for n, i in enumerate(kernel.instructions):
        wrong = _wrong(kernel, i)
        if wrong:
            raise GraphError(f"legal kernel: %{n}: {wrong}\n{kernel}")
    for s in kernel.stores:
        buffer = kernel.buffers[s.buffer]
        reduced = any(kernel.axes[a].kind == REDUCED for a in kernel.store_free(s))
        if reduced and buffer.role != SCRATCH:
            raise GraphError(f"legal kernel: a store depends on a reduced axis\n{kernel}")
        parts = [kernel.instructions[v].dtype for v in (s.value, s.second) if v is not None]
        if parts != in_memory(buffer.dtype):
            raise GraphError(f"legal kernel: {parts} stored to {buffer.dtype}\n{kernel}")


def _wrong(kernel: Kernel, i: Instruction) -> str:
    if kind(i.dtype) not in ANY or i.dtype in ("f16", "bf16"):
        return f"{i.op} gives {i.dtype}"
    given = [kernel.instructions[a].dtype for a in i.args]
    rule = ELEMENTWISE.get(i.op)
    if rule is None:
        if i.op not in OTHERS:
            return f"no instruction {i.op}"
        if i.op == "reduce" and i.attr[0] not in REDUCTIONS:
            return f"no reduction {i.attr[0]}"
        if i.op in ("call", "rarely"):
            return misuse(i, given)
        if i.op == "lookup" and given != ["i32"]:
            return f"a lookup by {', '.join(given)}"
        if i.op in ("load", "param"):
            if len(i.attr) != 2:
                return f"{i.op} of no part"
            held = kernel.buffers[i.attr[0]].dtype if i.op == "load" else kernel.params[i.attr[0]]
            if i.dtype != in_memory(held)[i.attr[1]]:
                return f"{i.op} of {held} gives {i.dtype}"
        return ""
    return mismatch(rule, i.op, given, i.dtype)


def misuse(i: Instruction, given: list[str]) -> str:
    """What is wrong with the function that an instruction calls, or nothing."""
    name = i.attr[0]
    if not maths.exists(name, i.dtype):
        return f"no function {name} of {i.dtype}"
    before = [] if i.op == "call" else ["bool", i.dtype]
    right = given == [*before, *maths.params(name, i.dtype)]
    return "" if right else f"{i.op} {name} of {', '.join(given)}"


def mismatch(rule: Rule, op: str, given: list[str], result: str) -> str:
    """What is wrong with the dtypes of an elementwise instruction, or nothing."""
    if len(given) != len(rule.operands):
        return f"{op} takes {len(rule.operands)} operands, not {len(given)}"
    for n, (allowed, dtype) in enumerate(zip(rule.operands, given, strict=True)):
        if allowed == SAME and dtype != given[n - 1]:
            return f"{op} of {', '.join(given)}"
        if allowed != SAME and kind(dtype) not in allowed:
            return f"{op} of {', '.join(given)}"
    if rule.result == SAME:
        right = result == given[0]
    elif rule.result.isdigit():
        right = result == given[int(rule.result)]
    elif rule.result in ("f32", "u16"):
        right = result == rule.result
    else:
        right = kind(result) in rule.result
    return "" if right else f"{op} of {', '.join(given)} gives {result}"
