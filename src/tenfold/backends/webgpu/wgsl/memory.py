"""Loads and stores of an invocation.

Elements shorter than a word lie several in one. Who writes whole words writes them plainly; who
writes single elements, beside others that write to the same word, goes by atomic operations.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.webgpu.wgsl.instructions import instruction
from tenfold.backends.webgpu.wgsl.invocation import Invocation
from tenfold.backends.webgpu.wgsl.types import REGISTER, SHORT, constant, element
from tenfold.backends.webgpu.wgsl.writer import Writer
from tenfold.kernel.ir.index import Index
from tenfold.kernel.ir.kernel import Store
from tenfold.kernel.ir.legal import in_memory
from tenfold.kernel.passes.legalise import update


def load(v: Invocation, value: int) -> None:
    """A load instruction, for all its slots."""
    i, w = v.kernel.instructions[value], v.w
    assert i.index is not None
    buffer, part = i.attr
    if buffer in v.wide and v.spread(value) and not i.args:
        _load_wide(v, value, buffer, i.index)
        return
    ty = REGISTER[i.dtype]
    for slot in v.each(value):
        if not i.args:
            found = w.let(ty, read(v, buffer, v.position(i.index, slot), part))
        else:
            found = w.var(ty, f"{ty}()")
            with w.block(f"if ({v.get(i.args[0], slot)})"):
                w.put(f"{found} = {read(v, buffer, v.position(i.index, slot), part)};")
        v.put(value, slot, found)


def read(v: Invocation, buffer: int, at: str, part: int = 0) -> str:
    """An element of a buffer, as its register has it."""
    dtype = v.kernel.buffers[buffer].dtype
    if dtype in SHORT:
        at = v.w.let("i32", at)
        place = f"b{buffer}[{at} >> {_shift(dtype)}u]"
        word = f"atomicLoad(&{place})" if buffer in v.atomic else place
        return opened(dtype, f"({word} >> {_offset(dtype, at)})")
    if in_memory(dtype)[1:]:
        at = f"2 * {at} + {part}"
    return f"b{buffer}[{at}]"


def opened(dtype: str, bits: str) -> str:
    """A short element of the low bits of a word."""
    size = SHORT[dtype]
    if dtype == "bool":
        return f"(({bits} & 255u) != 0u)"
    if dtype[0] == "i":
        return f"(bitcast<i32>({bits} << {32 - size}u) >> {32 - size}u)"
    return f"({bits} & {(1 << size) - 1}u)"


def closed(dtype: str, x: str) -> str:
    """The bits of a short element, those above them clear."""
    if dtype == "bool":
        return f"select(0u, 1u, {x})"
    return f"(bitcast<u32>({x}) & {(1 << SHORT[dtype]) - 1}u)" if dtype[0] == "i" else x


def _shift(dtype: str) -> int:
    return 2 if SHORT[dtype] == 8 else 1


def _offset(dtype: str, at: str) -> str:
    """How far an element lies in its word, in bits."""
    return f"(u32({at} & {32 // SHORT[dtype] - 1}) * {SHORT[dtype]}u)"


def store(v: Invocation, number: int, test: str = "") -> None:
    """A store, for all its slots, where a test holds."""
    item = v.kernel.stores[number]
    free = v.kernel.store_free(item)
    apart = v.lane is not None and v.lane in free
    if apart and item.buffer in v.wide:
        _store_wide(v, item)
        return
    for slot in range(v.slots if apart else 1):
        tests = [test] if test else []
        if item.condition is not None:
            tests.append(v.get(item.condition, slot))
        with v.w.block(f"if ({' && '.join(tests)})" if tests else ""):
            _store_one(v, item, slot)


def _store_one(v: Invocation, item: Store, slot: int) -> None:
    w, dtype = v.w, v.kernel.buffers[item.buffer].dtype
    at = w.let("i32", v.position(item.index, slot))
    values = [v.get(x, slot) for x in (item.value, item.second) if x is not None]
    if item.update:
        there = [w.let(ty, text) for ty, text in held(v, item.buffer, at)]
        values = joined(w, item.update, dtype, there, values)
    write(v, item.buffer, at, values)


def held(v: Invocation, buffer: int, at: str) -> list[tuple[str, str]]:
    """What an element of a buffer is, or both parts of it: types in registers, and texts."""
    parts = enumerate(in_memory(v.kernel.buffers[buffer].dtype))
    return [(REGISTER[dtype], read(v, buffer, at, part)) for part, dtype in parts]


def write(v: Invocation, buffer: int, at: str, values: Sequence[str]) -> None:
    """Have an element of a buffer be this, or both parts of it."""
    w, dtype = v.w, v.kernel.buffers[buffer].dtype
    if dtype in SHORT:
        place, by = f"b{buffer}[{at} >> {_shift(dtype)}u]", w.let("u32", _offset(dtype, at))
        word = f"{closed(dtype, values[0])} << {by}"
        mask = f"~({(1 << SHORT[dtype]) - 1}u << {by})"
        if buffer in v.atomic:
            w.put(f"atomicAnd(&{place}, {mask});")
            w.put(f"atomicOr(&{place}, {word});")
        else:
            w.put(f"{place} = ({place} & {mask}) | ({word});")
    elif len(values) > 1:
        w.put(f"b{buffer}[2 * {at}] = {values[0]};")
        w.put(f"b{buffer}[2 * {at} + 1] = {values[1]};")
    else:
        w.put(f"b{buffer}[{at}] = {values[0]};")


def joined(w: Writer, name: str, dtype: str, there: list[str], given: list[str]) -> list[str]:
    """What an update makes of what is there and what is given, as both lie in memory."""
    legal = update(name, dtype, brain=True)
    values: list[str] = []
    w.computed.update(given)  # for all that is known
    for i in legal.instructions:
        if i.op == "param":
            values.append((there, given)[i.attr[0]][i.attr[1]])
        elif i.op == "const":
            values.append(constant(i.dtype, i.attr[0]))
        else:
            sources = [legal.instructions[a].dtype for a in i.args]
            values.append(instruction(w, i.op, i.dtype, sources, [values[a] for a in i.args]))
    (item,) = legal.stores
    return [values[x] for x in (item.value, item.second) if x is not None]


def guard(v: Invocation, number: int, test: str = "") -> None:
    """Where a check fails at any slot, and a test holds, set its bit where the host looks."""
    check = v.kernel.checks[number]
    for slot in v.each(check.condition):
        held = v.get(check.condition, slot)
        with v.w.block(f"if ({held})"):
            pass
        with v.w.block(f"else if ({test})" if test else "else"):
            v.w.put(f"atomicOr(&fault[0], {1 << check.code}u);")


# Slots that lie side by side, in vectors or whole words.


def _anchor(v: Invocation, buffer: int, index: Index) -> str:
    """The number of the vector or word that slots fill."""
    return f"{v.position(index)} / {v.slots}"


def _load_wide(v: Invocation, value: int, buffer: int, index: Index) -> None:
    dtype, w = v.kernel.buffers[buffer].dtype, v.w
    at = w.let("i32", _anchor(v, buffer, index))
    if dtype not in SHORT:
        whole = w.let(f"vec{v.slots}<{element(dtype)}>", f"b{buffer}[{at}]")
        for slot in range(v.slots):
            v.put(value, slot, f"{whole}[{slot}]")
        return
    size, words = SHORT[dtype], v.slots * SHORT[dtype] // 32
    ty = REGISTER[in_memory(dtype)[0]]
    found = [w.let("u32", f"b{buffer}[{at} * {words} + {n}]") for n in range(words)]
    for slot in range(v.slots):
        word, by = found[slot * size // 32], slot * size % 32
        v.put(value, slot, w.let(ty, opened(dtype, f"({word} >> {by}u)")))


def _store_wide(v: Invocation, item: Store) -> None:
    dtype, w = v.kernel.buffers[item.buffer].dtype, v.w
    at = w.let("i32", _anchor(v, item.buffer, item.index))
    values = [v.get(item.value, slot) for slot in range(v.slots)]
    if dtype not in SHORT:
        ty = f"vec{v.slots}<{element(dtype)}>"
        w.put(f"b{item.buffer}[{at}] = {ty}({', '.join(values)});")
        return
    size = SHORT[dtype]
    each = 32 // size
    for n in range(v.slots // each):
        own = values[n * each : (n + 1) * each]
        parts = [f"({closed(dtype, x)} << {k * size}u)" for k, x in enumerate(own)]
        words = v.slots // each
        w.put(f"b{item.buffer}[{at} * {words} + {n}] = {' | '.join(parts)};")
