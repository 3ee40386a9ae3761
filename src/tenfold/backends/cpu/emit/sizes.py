"""The sizes of a general kernel: read where the function begins, with all that is computed from
them, as integers of other types and as vectors too: `%n3`, `%n3.i32`, `%n3.i32.wide`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tenfold.backends.cpu.entry.abi import PARAM_BYTES
from tenfold.backends.llvm.writer import LANES, vector
from tenfold.kernel.ir.number import Computed, Facts

SIZE_BYTES = 8
_REGISTER = re.compile(r"%n(\d+)(?:\.(i\d+)(\.wide)?)?\b")


def registers(facts: Facts, params: int, lines: Iterable[str]) -> list[str]:
    """The lines that define the registers of the numbers named in others; the sizes lie behind
    so many parameters."""
    named = {found for line in lines for found in _REGISTER.findall(line)}
    waiting = [int(at) for at, _, _ in named]
    wanted: set[int] = set()
    while waiting:
        at = waiting.pop()
        if at in wanted:
            continue
        wanted.add(at)
        made = facts.made[at]
        if isinstance(made, Computed):
            waiting += [p for p in (made.first, made.second) if not _constant(facts, p)]
    out = [line for at in sorted(wanted) for line in _defined(facts, at, params)]
    types = sorted({(int(at), element) for at, element, _ in named if element})
    for at, element in types:
        out += _converted(f"%n{at}", element, (str(at), element, ".wide") in named)
    return out


def _constant(facts: Facts, at: int) -> bool:
    return isinstance(facts.made[at], (int, float))


def _name(facts: Facts, at: int) -> str:
    return str(facts.made[at]) if _constant(facts, at) else f"%n{at}"


def _converted(n: str, element: str, wide: bool) -> list[str]:
    """A number as an integer of a type, or as a vector of such, too."""
    one, ty = f"{n}.{element}", vector(element)
    lines = []
    if element == "i64":
        one = n
    else:
        lines.append(f"  {one} = trunc i64 {n} to {element}")
    if wide:
        first, spread = f"{n}.{element}.first", f"<{LANES} x i32> zeroinitializer"
        lines += [
            f"  {first} = insertelement {ty} poison, {element} {one}, i64 0",
            f"  {n}.{element}.wide = shufflevector {ty} {first}, {ty} poison, {spread}",
        ]
    return lines


def _defined(facts: Facts, at: int, params: int) -> list[str]:
    made, n = facts.made[at], f"%n{at}"
    if made is None:
        offset = params * PARAM_BYTES + at * SIZE_BYTES
        return [
            f"  {n}.at = getelementptr i8, ptr %params, i64 {offset}",
            f"  {n} = load i64, ptr {n}.at, align 8",
        ]
    assert isinstance(made, Computed)
    a, b = _name(facts, made.first), _name(facts, made.second)
    if made.operation in ("add", "sub", "mul"):
        return [f"  {n} = {made.operation} nsw i64 {a}, {b}"]
    if made.operation in ("shl", "and", "shr"):
        operation = "ashr" if made.operation == "shr" else made.operation
        return [f"  {n} = {operation} i64 {a}, {b}"]
    if made.operation == "bits":
        zeros = f"call i64 @llvm.ctlz.i64(i64 {a}, i1 false)"
        return [f"  {n}.z = {zeros}", f"  {n} = sub i64 64, {n}.z"]
    if made.operation == "abs":
        return [f"  {n} = call i64 @llvm.abs.i64(i64 {a}, i1 false)"]
    assert made.operation in ("floordiv", "mod"), made.operation
    # Rounded down, as in Python; divisors are positive.
    lines = [
        f"  {n}.r = srem i64 {a}, {b}",
        f"  {n}.s = ashr i64 {n}.r, 63",
    ]
    if made.operation == "mod":
        more = [f"  {n}.m = and i64 {n}.s, {b}", f"  {n} = add i64 {n}.r, {n}.m"]
    else:
        more = [f"  {n}.q = sdiv i64 {a}, {b}", f"  {n} = add i64 {n}.q, {n}.s"]
    return lines + more
