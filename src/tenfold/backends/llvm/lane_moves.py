"""Moves of single lanes, out of line: what no instruction of a target does.

LLVM writes a masked move, a gather or a scatter that its target lacks as a test, an address and a
move for each lane, at every place where it stands. That is much of the code of a small kernel, and
of the time it takes to compile. So each of them is a function, once a module: masked moves loop
over the lanes that are alive, unless these are the first ones.
"""

from __future__ import annotations

from tenfold.backends.llvm.text import Fragment
from tenfold.backends.llvm.writer import Writer, vector

PREFIX = "lanes."  # of the functions' names


def load(w: Writer, at: str, element: str, mask: str, lanes: int) -> str:
    """The contiguous elements that a mask leaves alive, and zeros."""
    return w.op(_call(w, "load", element, vector(element, True, lanes), lanes, f"ptr {at}", mask))


def store(w: Writer, at: str, element: str, x: str, mask: str, lanes: int) -> None:
    """Contiguous elements to memory, those that a mask leaves alive."""
    given = f"ptr {at}, {vector(element, True, lanes)} {x}"
    w.put(_call(w, "store", element, "void", lanes, given, mask))


def gather(w: Writer, start: str, element: str, index: str, offsets: str) -> str:
    """The elements at offsets from an address, all of them."""
    given = f"ptr {start}, {w.vector(index)} {offsets}"
    return w.op(_call(w, f"gather.{index}", element, w.vector(element), w.lanes, given))


def scatter(
    w: Writer, start: str, element: str, index: str, offsets: str, x: str, mask: str
) -> None:
    """Elements to offsets from an address, those that a mask leaves alive, in the lanes' order."""
    given = f"ptr {start}, {w.vector(index)} {offsets}, {w.vector(element)} {x}"
    w.put(_call(w, f"scatter.{index}", element, "void", w.lanes, given, mask))


def _call(
    w: Writer, what: str, element: str, result: str, lanes: int, given: str, mask: str = ""
) -> str:
    name = PREFIX + what
    w.maths.add((name, element, lanes))
    if mask:
        bits = w.op(f"bitcast {vector('i1', True, lanes)} {mask} to i{lanes}")
        given += f", i{lanes} {bits}"
    return f"call {result} @tenfold.{name}.{element}.{lanes}({given})"


def definition(w: Writer, name: str, element: str, attribute: str) -> Fragment:
    """The text of one of these functions."""
    what, _, index = name.removeprefix(PREFIX).partition(".")
    ty, mask = w.vector(element), f"i{w.lanes}"
    result = "void" if what in ("store", "scatter") else ty
    given = ["ptr %at"]
    w.label("entry")
    if index:
        given.append(f"{w.vector(index)} %offsets")
        _kept(w, w.vector(index), "%offsets", "%places")
    if result == "void":
        given.append(f"{ty} %x")
        _kept(w, ty, "%x", "%own")
    answer = ""
    if what == "gather":
        answer = "poison"
        for lane in range(w.lanes):
            place = _place(w, element, index, str(lane))
            x = w.op(f"load {element}, ptr {place}, align 1")
            answer = w.op(f"insertelement {ty} {answer}, {element} {x}, i64 {lane}")
    else:
        given.append(f"{mask} %mask")
        if what == "load":
            _kept(w, ty, "zeroinitializer", "%own")
        _each_alive(w, what, element, index)
        if what == "load":
            answer = w.op(f"load {ty}, ptr %own, align 64")
    w.put(f"ret {result} {answer}")
    head = f"define internal dso_local {result} @tenfold.{name}.{element}.{w.lanes}"
    head = f"{head}({', '.join(given)}) noinline nounwind{attribute} {{"
    return Fragment(tuple(sorted(w.declared)), "\n".join((head, *w.lines, "}")))


def _kept(w: Writer, ty: str, x: str, name: str) -> None:
    """A vector in memory."""
    w.put(f"{name} = alloca {ty}, align 64")
    w.put(f"store {ty} {x}, ptr {name}, align 64")


def _place(w: Writer, element: str, index: str, lane: str) -> str:
    """Where the element of a lane lies."""
    offset = lane
    if index:
        at = w.op(f"getelementptr {index}, ptr %places, i64 {lane}")
        offset = w.op(f"load {index}, ptr {at}")
    return w.op(f"getelementptr {element}, ptr %at, {index or 'i64'} {offset}")


def _first_ones(w: Writer, what: str, element: str) -> None:
    """Where the lanes of a mask are the first ones, move a power of two of them at a time."""
    mask = f"i{w.lanes}"
    following = w.op(f"add {mask} %mask, 1")
    w.put(f"%gaps = icmp ne {mask} {w.op(f'and {mask} %mask, {following}')}, 0")
    w.put("br i1 %gaps, label %lane, label %firsts")
    w.label("firsts")
    ended = w.op(f"zext {mask} {w.op(f'xor {mask} %mask, -1')} to i64")
    ended = w.op(f"or i64 {ended}, {1 << w.lanes}")
    count = w.call("i64", "llvm.cttz.i64", ("i64", ended), ("i1", "true"))
    size = w.lanes
    while size:
        here, then = w.fresh("move"), w.fresh("then")
        some = w.op(f"icmp ne i64 {w.op(f'and i64 {count}, {size}')}, 0")
        w.put(f"br i1 {some}, label %{here}, label %{then}")
        w.label(here)
        _moved(w, what, element, "", w.op(f"and i64 {count}, {-2 * size}"), size)
        w.put(f"br label %{then}")
        w.label(then)
        size //= 2
    w.put("br label %end")


def _each_alive(w: Writer, what: str, element: str, index: str) -> None:
    """Move the lanes of a mask, the first one first."""
    mask = f"i{w.lanes}"
    w.put(f"%some = icmp ne {mask} %mask, 0")
    w.put(f"br i1 %some, label %{'lane' if index else 'any'}, label %end")
    if not index:
        w.label("any")
        _first_ones(w, what, element)
    before = "entry" if index else "any"
    w.label("lane")
    w.put(f"%left = phi {mask} [ %mask, %{before} ], [ %rest, %lane ]")
    first = w.call(mask, f"llvm.cttz.{mask}", (mask, "%left"), ("i1", "true"))
    _moved(w, what, element, index, w.op(f"zext {mask} {first} to i64"))
    w.put(f"%rest = and {mask} %left, {w.op(f'sub {mask} %left, 1')}")
    w.put(f"%more = icmp ne {mask} %rest, 0")
    w.put("br i1 %more, label %lane, label %end")
    w.label("end")


def _moved(w: Writer, what: str, element: str, index: str, lane: str, lanes: int = 1) -> None:
    """Move an element, or some that follow it."""
    ty = vector(element, lanes > 1, lanes)
    far = _place(w, element, index, lane)
    near = w.op(f"getelementptr {element}, ptr %own, i64 {lane}")
    source, target = (far, near) if what == "load" else (near, far)
    x = w.op(f"load {ty}, ptr {source}, align 1")
    w.put(f"store {ty} {x}, ptr {target}, align 1")
