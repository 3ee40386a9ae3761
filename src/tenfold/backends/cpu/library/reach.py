"""Chains of boolean matrices row by row, as LLVM IR.

A row of a product is a set of columns: a bit for each, and behind these a bit for each word that
may hold some, so that a set of few among many is found quickly. A step goes from every member of a
set to its row of the next matrix: whole words where that is bits, a bit at a time where it is a
list. What two chains, one after the other, have in common at their beginning is computed once.

Lengths, rows and columns are held to what there is: whatever the inputs hold, nothing else is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenfold.backends.cpu.entry.abi import STOPPED
from tenfold.backends.cpu.library.loops import carried, each, look_text, when
from tenfold.backends.cpu.library.routine import NodeRoutine
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.text import Fragment, join
from tenfold.backends.llvm.writer import Writer
from tenfold.types import TensorType

_TABLES = 4
_CHAINS, _HEADS, _RANGES, _BITS, _FIRST = range(5)  # buffers; then the parts of each table
_LINES, _RANKS, _STARTS, _ITEMS_OF = range(4)  # of a table
_COUNTS = _FIRST + 4 * _TABLES
_ITEMS, _SCRATCH, _POLLED = _COUNTS + 1, _COUNTS + 2, _COUNTS + 3
_WORDS = ("chains", "longest", "heads", "dense", "extent", "words", "summary", "rows", "room")
_EIGHT = "<8 x i64>"


def reach_routine(types: Sequence[TensorType], given: Mapping[str, Any]) -> NodeRoutine:
    """The call for some chains: a part for each range."""
    chains, heads, ranges, bits = types[:_FIRST]
    extent = bits.shape[1]
    words = -(-extent // 64)
    summary = -(-words // 64)
    sizes = [t.shape[0] for t in types[_FIRST:]]
    params = (
        *chains.shape[:2], heads.shape[0], bits.shape[0], extent, words, summary,
        given["rows"], given["room"], *sizes,
    )  # fmt: skip
    scratch = max(1, chains.shape[1] - 1) * (words + summary) * 8
    parts = ranges.shape[0]
    return NodeRoutine("tn_reach_i32", params, parts, scratch, parts * (given["rows"] + 1) * 1000)


def reach_text(target: LLVMTarget) -> str:
    """The module of the routine."""
    parts = [_combine(target, False), _combine(target, True), _from_row(target), _from_set(target)]
    parts += [_begins(target), _chain(target), _row(target), _entry(target)]
    needs = sorted({line for _, declared in parts for line in declared})
    return join([Fragment(tuple(needs), look_text(_POLLED) + "".join(t for t, _ in parts))])


class _Function:
    """What writes one function; every one of them has the buffers and the parameters."""

    def __init__(self, target: LLVMTarget, name: str, given: str, returns: str = "void") -> None:
        self.w = Writer(target)
        self.head = f"define internal {returns} @{name}(ptr %buffers, ptr %params{given}) nounwind"

    def text(self, end: str = "ret void") -> tuple[str, set[str]]:
        body = self.w.taken()
        return f"{self.head} {{\nentry:\n{body}  {end}\n}}\n", self.w.declared

    def param(self, name: str) -> str:
        at = _WORDS.index(name) if name in _WORDS else name
        place = self.w.op(f"getelementptr i64, ptr %params, i64 {at}")
        return self.w.op(f"load i64, ptr {place}, align 8")

    def buffer(self, number: int | str) -> str:
        place = self.w.op(f"getelementptr ptr, ptr %buffers, i64 {number}")
        return self.w.op(f"load ptr, ptr {place}, align 8")

    def at(self, base: str, index: str | int, type: str = "i64") -> str:
        return self.w.op(f"getelementptr {type}, ptr {base}, i64 {index}")

    def load(self, base: str, index: str | int, type: str = "i64") -> str:
        """An element, the smaller ones made i64."""
        found = self.w.op(f"load {type}, ptr {self.at(base, index, type)}, align {_align(type)}")
        return found if type != "i32" else self.w.op(f"sext i32 {found} to i64")

    def store(self, value: str, base: str, index: str | int, type: str = "i64") -> None:
        if type == "i32":
            value = self.w.op(f"trunc i64 {value} to i32")
        self.w.put(f"store {type} {value}, ptr {self.at(base, index, type)}, align {_align(type)}")

    def math(self, name: str, a: str | int, b: str | int) -> str:
        return self.w.op(f"{name} i64 {a}, {b}")

    def clamped(self, value: str, low: str, high: str) -> str:
        above = self.w.intrinsic("smax", "i64", value, low)
        return self.w.intrinsic("smin", "i64", above, high)

    def is_(self, how: str, a: str, b: str | int) -> str:
        return self.w.op(f"icmp {how} i64 {a}, {b}")

    def flipped(self, condition: str) -> str:
        return self.w.op(f"xor i1 {condition}, true")


def _align(type: str) -> int:
    return 4 if type == "i32" else 8


def _members(f: _Function, word: str, base: str, body: Any) -> None:
    """Code for every bit of a word, given its number from `base` on."""
    w = f.w
    count = w.intrinsic("ctpop", "i64", word)
    with carried(w, "0", count, 1, ("i64", word)) as (_, (left,), onward):
        bit = w.call("i64", "llvm.cttz.i64", ("i64", left), ("i1", "true"))
        body(f.math("add", base, bit))
        onward(f.math("and", left, f.math("sub", left, 1)))


def _filled(f: _Function, set_: str, body: Any) -> None:
    """Code for every word of a set that may not be 0: its number."""
    words, summary = f.param("words"), f.param("summary")
    with each(f.w, "0", summary) as s:
        some = f.load(set_, f.math("add", words, s))

        def inside(number: str) -> None:
            with when(f.w, f.is_("ult", number, words)):
                body(number)

        _members(f, some, f.math("shl", s, 6), inside)


def _in_lists(f: _Function, step: str, row: str, body: Any) -> None:
    """Code for every column of a row of a step's lists."""
    w = f.w
    number, low, high = (f.load(step, n, "i32") for n in range(3))
    extent = f.param("extent")
    last = w.intrinsic("smin", "i64", high, str(_TABLES))
    with each(w, low, last) as k, when(w, f.is_("ult", number, _size(f, k, _LINES))):
        place, word, bit = _line(f, k, number, row)
        with when(w, f.is_("ne", f.math("and", word, bit), 0)):
            last = f.math("sub", _size(f, k, _STARTS), 1)
            rank = f.clamped(f.load(_part(f, k, _RANKS), place, "i32"), "0", last)
            before = f.math("and", word, f.math("sub", bit, 1))
            line = f.math("add", rank, w.intrinsic("ctpop", "i64", before))
            starts, count = _part(f, k, _STARTS), _size(f, k, _ITEMS_OF)
            first, past = (
                f.clamped(f.load(starts, at, "i32"), "0", count)
                for at in (
                    w.intrinsic("smin", "i64", line, last),
                    w.intrinsic("smin", "i64", f.math("add", line, 1), last),
                )
            )
            items = _part(f, k, _ITEMS_OF)
            with each(w, first, past) as i:
                item = f.load(items, i, "i32")
                with when(w, f.is_("ult", item, extent)):
                    body(item)


def _part(f: _Function, table: str, part: int) -> str:
    """The buffer of a part of a table."""
    return f.buffer(f.math("add", f.math("shl", table, 2), _FIRST + part))


def _size(f: _Function, table: str, part: int) -> str:
    """How many rows a part of a table has."""
    return f.param(f.math("add", f.math("shl", table, 2), len(_WORDS) + part))


def _line(f: _Function, table: str, number: str, row: str) -> tuple[str, str, str]:
    """Which word of a table has the bit of a row, the word, and that bit."""
    place = f.math("add", f.math("mul", number, f.param("words")), f.math("lshr", row, 6))
    bit = f.math("shl", 1, f.math("and", row, 63))
    return place, f.load(_part(f, table, _LINES), place), bit


def _bit_row(f: _Function, number: str, row: str) -> str:
    """Where a row of a matrix of bits begins."""
    at = f.math("add", f.math("mul", number, f.param("extent")), row)
    return f.at(f.buffer(_BITS), f.math("mul", at, f.param("words")))


def _combine(target: LLVMTarget, removes: bool) -> tuple[str, set[str]]:
    """A row of a step put into a set, or taken out of it."""
    name = "tn_reach_less" if removes else "tn_reach_add"
    f = _Function(target, name, ", ptr %set, ptr %step, i64 %row")
    w = f.w
    words = f.param("words")
    number = f.load("%step", 0, "i32")
    dense = f.is_("slt", f.load("%step", 1, "i32"), 0)

    def joined(held: str, more: str, type: str) -> str:
        if removes:
            ones = "-1" if type == "i64" else "splat (i64 -1)"
            more = w.op(f"xor {type} {more}, {ones}")
        return w.op(f"{'and' if removes else 'or'} {type} {held}, {more}")

    with when(w, w.op(f"and i1 {dense}, {f.is_('ult', number, f.param('dense'))}")):
        line = _bit_row(f, number, "%row")
        whole = f.math("and", words, -8)
        for low, high, by, type in (("0", whole, 8, _EIGHT), (whole, words, 1, "i64")):
            with each(w, low, high, by) as i:
                place = f.at("%set", i)
                held = w.op(f"load {type}, ptr {place}, align 8")
                more = w.op(f"load {type}, ptr {f.at(line, i)}, align 8")
                w.put(f"store {type} {joined(held, more, type)}, ptr {place}, align 8")
        if not removes:
            with each(w, words, f.math("add", words, f.param("summary"))) as i:
                f.store("-1", "%set", i)
    with when(w, f.flipped(dense)):

        def mark(item: str) -> None:
            word = f.math("lshr", item, 6)
            bit = f.math("shl", 1, f.math("and", item, 63))
            f.store(joined(f.load("%set", word), bit, "i64"), "%set", word)
            if not removes:
                at = f.math("add", words, f.math("lshr", word, 6))
                some = f.math("shl", 1, f.math("and", word, 63))
                f.store(f.math("or", f.load("%set", at), some), "%set", at)

        _in_lists(f, "%step", "%row", mark)
    return f.text()


def _add(f: _Function, set_: str, step: str, row: str) -> None:
    f.w.put(
        f"call void @tn_reach_add(ptr %buffers, ptr %params, ptr {set_}, ptr {step}, i64 {row})"
    )


def _from_row(target: LLVMTarget) -> tuple[str, set[str]]:
    """From each column of a row of one step, the next step into a set."""
    f = _Function(target, "tn_reach_row", ", ptr %step, i64 %row, ptr %next, ptr %set")
    w, extent = f.w, f.param("extent")
    number = f.load("%step", 0, "i32")
    dense = f.is_("slt", f.load("%step", 1, "i32"), 0)
    with when(w, w.op(f"and i1 {dense}, {f.is_('ult', number, f.param('dense'))}")):
        line = _bit_row(f, number, "%row")
        with each(w, "0", f.param("words")) as i:

            def onward(a: str) -> None:
                with when(w, f.is_("ult", a, extent)):
                    _add(f, "%set", "%next", a)

            _members(f, f.load(line, i), f.math("shl", i, 6), onward)
    with when(w, f.flipped(dense)):
        _in_lists(f, "%step", "%row", lambda a: _add(f, "%set", "%next", a))
    return f.text()


def _from_set(target: LLVMTarget) -> tuple[str, set[str]]:
    """From each member of a set, the next step into another."""
    f = _Function(target, "tn_reach_set", ", ptr %from, ptr %next, ptr %set")
    extent = f.param("extent")

    def word(number: str) -> None:
        def onward(a: str) -> None:
            with when(f.w, f.is_("ult", a, extent)):
                _add(f, "%set", "%next", a)

        _members(f, f.load("%from", number), f.math("shl", number, 6), onward)

    _filled(f, "%from", word)
    return f.text()


def _begins(target: LLVMTarget) -> tuple[str, set[str]]:
    """Not 0 if a row of a step may have columns: of most rows none has."""
    f = _Function(target, "tn_reach_begins", ", ptr %step, i64 %row", "i64")
    w = f.w
    number, low, high = (f.load("%step", n, "i32") for n in range(3))
    some = w.op("alloca i64, align 8")
    f.store(f.math("lshr", low, 63), some, 0)  # bits: low is below 0
    first = w.intrinsic("smax", "i64", low, "0")
    past = w.intrinsic("smin", "i64", high, str(_TABLES))
    with each(w, first, past) as k, when(w, f.is_("ult", number, _size(f, k, _LINES))):
        _, word, bit = _line(f, k, number, "%row")
        f.store(f.math("or", f.load(some, 0), f.math("and", word, bit)), some, 0)
    answer = f.load(some, 0)
    return f.text(f"ret i64 {answer}")


def _cleared(f: _Function, set_: str) -> None:
    count = f.math("add", f.param("words"), f.param("summary"))
    whole = f.math("and", count, -8)
    for low, high, by, type in (("0", whole, 8, _EIGHT), (whole, count, 1, "i64")):
        with each(f.w, low, high, by) as i:
            zero = "0" if by == 1 else "zeroinitializer"
            f.w.put(f"store {type} {zero}, ptr {f.at(set_, i)}, align 8")


def _chain(target: LLVMTarget) -> tuple[str, set[str]]:
    """One chain of a row; `%before` is the chain whose sets are held, null for none, and `%held`
    how many steps it has. The answer is how many steps this one has."""
    given = ", ptr %sets, ptr %chain, i64 %row, ptr %before, i64 %held"
    f = _Function(target, "tn_reach_chain", given, "i64")
    w = f.w
    steps, shared, alike = (w.op("alloca i64, align 8") for _ in range(3))
    for place in (steps, shared):
        f.store("0", place, 0)
    f.store("1", alike, 0)
    longest = f.param("longest")

    def step(number: str | int) -> str:
        return f.at("%chain", number if number == 0 else f.math("mul", number, 3), "i32")

    with each(w, "0", longest) as i:
        there = f.is_("sge", f.load(step(i), 0, "i32"), 0)
        next_ = f.is_("eq", f.load(steps, 0), i)
        with when(w, w.op(f"and i1 {there}, {next_}")):
            f.store(f.math("add", i, 1), steps, 0)
    count = f.load(steps, 0)
    # of two chains alike all along, the last step is taken again
    most = w.intrinsic("smin", "i64", f.math("sub", count, 1), f.math("sub", "%held", 1))
    with each(w, "0", most) as i:
        other = f.at("%before", f.math("mul", i, 3), "i32")
        for n in range(3):
            same = f.is_("eq", f.load(step(i), n, "i32"), f.load(other, n, "i32"))
            same = w.op(f"zext i1 {same} to i64")
            f.store(f.math("and", f.load(alike, 0), same), alike, 0)
        with when(w, f.is_("ne", f.load(alike, 0), 0)):
            f.store(f.math("add", i, 1), shared, 0)
    with when(w, f.is_("eq", count, 1)):
        _add(f, "%sets", "%chain", "%row")
    size = f.math("add", f.param("words"), f.param("summary"))
    first = w.intrinsic("smax", "i64", f.load(shared, 0), "1")
    with each(w, first, count) as done:
        last = f.is_("eq", f.math("add", done, 1), count)
        behind = w.select(last, "i64", "0", done)
        into = f.at("%sets", f.math("mul", behind, size))
        with when(w, f.flipped(last)):
            _cleared(f, into)
        one = f.is_("eq", done, 1)
        with when(w, one):
            w.put(
                "call void @tn_reach_row(ptr %buffers, ptr %params, ptr %chain, i64 %row, "
                f"ptr {step(done)}, ptr {into})"
            )
        with when(w, f.flipped(one)):
            source = f.at("%sets", f.math("mul", f.math("sub", done, 1), size))
            w.put(
                f"call void @tn_reach_set(ptr %buffers, ptr %params, ptr {source}, "
                f"ptr {step(done)}, ptr {into})"
            )
    return f.text(f"ret i64 {count}")


def _row(target: LLVMTarget) -> tuple[str, set[str]]:
    """All chains of a head for a row, what is known of it taken out; how many columns are left."""
    f = _Function(target, "tn_reach_all", ", ptr %sets, ptr %head, i64 %row", "i64")
    w = f.w
    before, held, total, begun = (w.op("alloca i64, align 8") for _ in range(4))
    w.put(f"store ptr null, ptr {before}, align 8")
    for place in (held, total, begun):
        f.store("0", place, 0)
    chains, longest = f.param("chains"), f.param("longest")
    first = f.clamped(f.load("%head", 0, "i32"), "0", chains)
    past = f.clamped(f.load("%head", 1, "i32"), "0", chains)
    table = f.buffer(_CHAINS)
    with each(w, first, past) as c:
        chain = f.at(table, f.math("mul", c, f.math("mul", longest, 3)), "i32")
        some = w.op(f"call i64 @tn_reach_begins(ptr %buffers, ptr %params, ptr {chain}, i64 %row)")
        with when(w, f.is_("ne", some, 0)):
            with when(w, f.is_("eq", f.load(begun, 0), 0)):
                _cleared(f, "%sets")
                f.store("1", begun, 0)
            other = w.op(f"load ptr, ptr {before}, align 8")
            count = w.op(
                "call i64 @tn_reach_chain(ptr %buffers, ptr %params, ptr %sets, "
                f"ptr {chain}, i64 %row, ptr {other}, i64 {f.load(held, 0)})"
            )
            with when(w, f.is_("sgt", count, 1)):
                w.put(f"store ptr {chain}, ptr {before}, align 8")
                f.store(count, held, 0)
    with when(w, f.is_("ne", f.load(begun, 0), 0)):
        known = f.at("%head", 2, "i32")
        with when(w, f.is_("sge", f.load(known, 0, "i32"), 0)):
            w.put(
                "call void @tn_reach_less(ptr %buffers, ptr %params, ptr %sets, "
                f"ptr {known}, i64 %row)"
            )
        # bits behind the last column are none
        last = f.math("sub", f.param("words"), 1)
        beyond = f.math("and", f.math("sub", 0, f.param("extent")), 63)
        mask = f.math("lshr", -1, beyond)
        f.store(f.math("and", f.load("%sets", last), mask), "%sets", last)

        def add(number: str) -> None:
            count = w.intrinsic("ctpop", "i64", f.load("%sets", number))
            f.store(f.math("add", f.load(total, 0), count), total, 0)

        _filled(f, "%sets", add)
    answer = f.load(total, 0)
    return f.text(f"ret i64 {answer}")


def _entry(target: LLVMTarget) -> tuple[str, set[str]]:
    f = _Function(target, "tn_reach_i32", ", i64 %low, i64 %high", "i32")
    f.head = f.head.replace("internal", "dso_local")
    w = f.w
    cursor, full = (w.op("alloca i64, align 8") for _ in range(2))
    rows, room, extent, heads = (f.param(n) for n in ("rows", "room", "extent", "heads"))
    ranges, sets = f.buffer(_RANGES), f.buffer(_SCRATCH)
    head_table = f.buffer(_HEADS)
    with each(w, "%low", "%high") as part:
        for place in (cursor, full):
            f.store("0", place, 0)
        counts = f.at(f.buffer(_COUNTS), f.math("mul", part, rows), "i32")
        items = f.at(f.buffer(_ITEMS), f.math("mul", part, room), "i32")
        own = f.at(ranges, f.math("mul", part, 3), "i32")
        number = f.load(own, 0, "i32")
        first = f.clamped(f.load(own, 1, "i32"), "0", extent)
        most = w.intrinsic("smin", "i64", extent, f.math("add", first, rows))
        past = f.clamped(f.load(own, 2, "i32"), first, most)
        past = w.select(f.is_("ult", number, heads), "i64", past, first)
        head = f.at(head_table, f.math("mul", number, 5), "i32")
        with each(w, first, past) as row:
            with when(w, f.is_("eq", f.math("and", row, 7), 0)):
                answer = w.op("call i32 @tn_look(ptr %buffers)")
                with when(w, w.op(f"icmp ne i32 {answer}, 0")):
                    w.put(f"ret i32 {STOPPED}")
                    w.label(w.fresh("never"))
            at = f.math("sub", row, first)
            f.store("-1", counts, at, "i32")
            with when(w, f.is_("eq", f.load(full, 0), 0)):
                count = w.op(
                    "call i64 @tn_reach_all(ptr %buffers, ptr %params, "
                    f"ptr {sets}, ptr {head}, i64 {row})"
                )
                begun = f.load(cursor, 0)
                fits = f.is_("sle", f.math("add", begun, count), room)
                with when(w, f.flipped(fits)):
                    f.store("1", full, 0)
                with when(w, fits):
                    f.store(count, counts, at, "i32")
                # a row that comes to nothing may have left the set as it was
                with when(w, w.op(f"and i1 {fits}, {f.is_('sgt', count, 0)}")):

                    def word(number: str) -> None:
                        def put(item: str) -> None:
                            place = f.load(cursor, 0)
                            f.store(item, items, place, "i32")
                            f.store(f.math("add", place, 1), cursor, 0)

                        _members(f, f.load(sets, number), f.math("shl", number, 6), put)

                    _filled(f, sets, word)
        with each(w, f.math("sub", past, first), rows) as i:
            f.store("0", counts, i, "i32")
        with each(w, f.load(cursor, 0), room) as i:
            f.store("0", items, i, "i32")
    return f.text("ret i32 0")
