"""Convolutions of a padded input in panels, as LLVM IR: one function for each dtype.

    i32 tn_panels_f32(ptr buffers, ptr params, i64 low, i64 high)

is called as a kernel is: `buffers` has the addresses of the input, of the kernel and of the result,
then of what is polled; `params` the sizes; chunks `low` to `high` are computed (`sizes`). So one
function serves every plan and every size.

It is a product of matrices whose right one is never in memory as a whole. What so many columns as
a tile has see of the input is packed into a panel on the stack, a run of terms at a time
(`panel`); then tile after tile of out channels goes over it (`tile`). Where columns are neighbours
in the input and out channels few, it is read as it lies. Tiles that lie in the result as they are
add up there, others on the stack.
"""

from __future__ import annotations

from tenfold.backends.cpu.library.conv.panel import PAIR, PIECE, packing
from tenfold.backends.cpu.library.conv.sizes import COLUMNS, ROWS, TERMS, WORDS
from tenfold.backends.cpu.library.conv.tile import (
    VECTORS,
    pitch_of,
    rows_near,
    rows_of,
    tile,
    tile_name,
)
from tenfold.backends.cpu.library.lanes import Lanes
from tenfold.backends.cpu.library.loops import each, look_text, poll, when
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.text import Fragment, join
from tenfold.backends.llvm.writer import COMPUTE, Writer


def panels_text(symbol: str, target: LLVMTarget) -> str:
    """The module of the convolution that has this name."""
    element = COMPUTE[symbol.rpartition("_")[2]]
    w = Writer(target)
    functions = look_text(3) + packing(symbol, element, w)
    for rows in _heights(target):
        for vectors in range(1, VECTORS + 1):
            functions += tile(symbol, element, rows, vectors, False, w)
        functions += tile(symbol, element, rows, VECTORS, True, w)
    body = functions + _Chunks(symbol, element, w).text()
    return join([Fragment(tuple(sorted(w.declared)), body)])


def _heights(target: LLVMTarget) -> tuple[int, ...]:
    """The rows of tiles: what is left over goes by the least that has as many."""
    most = rows_of(target)
    return most, most // 2


class _Chunks(Lanes):
    """What writes the function itself. Cells hold what changes in outer loops."""

    def __init__(self, symbol: str, element: str, w: Writer) -> None:
        super().__init__(element, w)
        self.symbol = symbol
        self.wide = VECTORS * self.lanes  # columns of a panel

    def text(self) -> str:
        w = self.w
        w.block = "entry"
        self.x, self.kernel, self.y = (self.buffer(n) for n in range(3))
        self.given = {name: self.get("%params", str(n)) for n, name in enumerate(WORDS)}
        self.taps = w.op(f"getelementptr i64, ptr %params, i64 {len(WORDS)}")
        room = (TERMS * pitch_of(w.target) + 1) * self.lanes
        self.panel = w.op(f"alloca {self.element}, i64 {room}, align 64")
        self.sums = w.op(f"alloca {self.element}, i64 {ROWS * self.wide}, align 64")
        self.pieces = w.op(f"alloca i64, i64 {PIECE * self.wide}, align 16")
        self.pairs = w.op(f"alloca i64, i64 {PAIR * VECTORS}, align 16")
        self.offsets = w.op(f"alloca i64, i64 {TERMS}, align 16")
        self.cells = {
            name: w.op("alloca i64, align 8")
            for name in ("image", "out0", "out1", "out2", "many", "most", "done", "at")
        }
        # As few runs of terms as there can be, about equally long.
        terms = self.given["terms"]
        parts = w.op(f"sdiv i64 {self.total(terms, str(TERMS - 1))}, {TERMS}")
        part = w.op(f"sdiv i64 {self.total(terms, parts, '-1')}, {parts}")
        with each(w, "%low", "%high") as chunk:
            self.chunk(chunk, part)
            poll(w)
        w.put("ret i32 0")
        return f"""
define dso_local i32 @{self.symbol}(
  ptr %buffers, ptr %params, i64 %low, i64 %high) nounwind "prefer-vector-width"="512" {{
entry:
{w.taken()}}}
"""

    def chunk(self, chunk: str, part: str) -> None:
        w, given = self.w, self.given
        over, number = self.split(chunk, given["column_chunks"])
        group, row_chunk = self.split(over, given["row_chunks"])
        first = self.times(number, str(COLUMNS))
        end = self.least(self.total(first, str(COLUMNS)), given["columns"])
        top = self.times(row_chunk, str(ROWS))
        bottom = self.least(self.total(top, str(ROWS)), given["rows"])
        channels = w.op(f"sdiv i64 {given['terms']}, {given['taps']}")
        seen = self.at(self.x, self.times(group, self.times(channels, given["channel"])))
        own = self.times(group, given["rows"])  # the first out channel of the group
        rest = first
        for name in ("out2", "out1", "out0"):
            rest, place = self.split(rest, given[name])
            self.put(place, self.cells[name])
        self.put(rest, self.cells["image"])
        with each(w, first, end, str(self.wide)) as column:
            columns = self.least(str(self.wide), self.less(end, column))
            image, pixel = self.split(column, given["span"])
            inside = w.op(f"icmp sle i64 {self.total(pixel, columns)}, {given['straight']}")
            vectors = w.op(f"sdiv i64 {self.total(columns, str(self.lanes - 1))}, {self.lanes}")
            even = w.op(f"icmp eq i64 {self.times(vectors, str(self.lanes))}, {columns}")
            whole = w.op(f"and i1 {inside}, {even}")  # its vectors lie in the result as they are
            self.cut(columns)
            with each(w, "0", given["terms"], part) as k:
                count = self.least(part, self.less(given["terms"], k))
                begins = w.op(f"icmp eq i64 {column}, {first}")
                several = w.op(f"icmp slt i64 {count}, {given['terms']}")
                with when(w, w.op(f"or i1 {begins}, {several}")):
                    self.offset(k, count)
                many, most = self.get(self.cells["many"]), self.get(self.cells["most"])
                run = w.op(f"icmp eq i64 {most}, 0")
                few = w.op(f"icmp sle i64 {given['rows']}, {rows_near(w.target)}")
                near = w.op(f"and i1 {run}, {few}")
                with when(w, w.op(f"xor i1 {near}, true")):
                    w.put(
                        f"call void @{self.symbol}_pack(ptr {self.panel}, ptr {seen}, "
                        f"ptr {self.pieces}, i64 {many}, ptr {self.pairs}, i64 {most}, "
                        f"ptr {self.offsets}, i64 {count}, i64 {given['step2']})"
                    )
                begin = self.at(seen, self.get(self.pieces))
                panel = w.select(near, "ptr", begin, self.panel)
                with each(w, top, bottom, str(rows_of(w.target))) as row:
                    inner = self.total(own, row)
                    to = self.times(self.channel(image, inner), given["plane"])
                    there = self.at(self.y, self.total(to, pixel))
                    above = self.times(self.less(row, top), str(self.wide))
                    here = self.at(self.sums, above)
                    a = self.at(self.kernel, self.total(self.times(inner, given["terms"]), k))
                    self.tiles(
                        self.less(bottom, row),
                        vectors,
                        near,
                        f"ptr {a}, i64 {given['terms']}",
                        f"ptr {panel}, i64 {count}, "
                        f"ptr {w.select(whole, 'ptr', there, here)}, "
                        f"i64 {w.select(whole, 'i64', given['plane'], str(self.wide))}, "
                        f"i1 {w.op(f'icmp eq i64 {k}, 0')}, ptr {self.offsets}",
                    )
            with when(w, w.op(f"xor i1 {whole}, true")):
                self.hand_out(image, pixel, columns, own, top, bottom)

    def cut(self, columns: str) -> None:
        """Cut the next columns into pieces."""
        w, given, cells = self.w, self.given, self.cells
        for name in ("many", "most", "done"):
            self.put("0", cells[name])
        for n in range(PAIR * VECTORS):
            self.put("0", self.pairs, str(n))
        self.put("0", cells["at"])  # pieces of the vector
        run = self.less(given["out2"], self.get(cells["out2"]))
        side_by_side = w.op(f"icmp eq i64 {given['step2']}, 1")
        enough = w.op(f"icmp sge i64 {run}, {self.wide}")
        enough = w.op(f"and i1 {side_by_side}, {enough}")
        with each(w, "0", columns) as _:
            done = self.get(cells["done"])
            with when(w, w.op(f"icmp slt i64 {done}, {columns}")):
                number, lane = self.split(done, str(self.lanes))
                here = self.get(cells["out2"])
                length = self.least(
                    self.least(self.less(given["out2"], here), self.less(columns, done)),
                    self.less(str(self.lanes), lane),
                )
                source = self.total(
                    self.times(self.get(cells["image"]), given["image"]),
                    *(self.times(self.get(cells[f"out{n}"]), given[f"step{n}"]) for n in range(3)),
                )
                many = self.get(cells["many"])
                word = self.times(many, str(PIECE))
                for n, value in enumerate((source, done, length)):
                    self.put(value, self.pieces, self.total(word, str(n)))
                self.put(self.total(many, "1"), cells["many"])
                begins = w.op(f"icmp eq i64 {lane}, 0")
                nth = w.select(begins, "i64", "0", self.get(cells["at"]))
                self.put(self.total(nth, "1"), cells["at"])
                most = w.call(
                    "i64",
                    "llvm.smax.i64",
                    ("i64", self.get(cells["most"])),
                    ("i64", self.total(nth, "1")),
                )
                self.put(most, cells["most"])
                slot = self.total(
                    self.times(number, str(PAIR)), self.times(self.least(nth, "1"), "2")
                )
                self.put(source, self.pairs, slot)
                self.put(length, self.pairs, self.total(slot, "1"))
                self.put(self.total(done, length), cells["done"])
                self.move_on(length)
        full = w.op(f"icmp eq i64 {columns}, {self.wide}")
        with when(w, w.op(f"and i1 {full}, {enough}")):
            self.put("0", cells["most"])

    def move_on(self, length: str) -> None:
        """To the place so many columns on, which is in this line or begins the next."""
        carry = length
        for name in ("out2", "out1", "out0"):
            after = self.total(self.get(self.cells[name]), carry)
            over = self.w.op(f"icmp eq i64 {after}, {self.given[name]}")
            self.put(self.w.select(over, "i64", "0", after), self.cells[name])
            carry = self.w.op(f"zext i1 {over} to i64")
        self.put(self.total(self.get(self.cells["image"]), carry), self.cells["image"])

    def offset(self, k: str, count: str) -> None:
        """The offsets of so many terms from one on: channel by channel, place by place."""
        w, given = self.w, self.given
        channel, tap = self.split(k, given["taps"])
        start, before = self.times(channel, given["channel"]), w.block
        w.put("br label %terms")
        w.label("terms")
        w.put(f"%term = phi i64 [ 0, %{before} ], [ %term.more, %terms ]")
        w.put(f"%tap = phi i64 [ {tap}, %{before} ], [ %tap.more, %terms ]")
        w.put(f"%start = phi i64 [ {start}, %{before} ], [ %start.more, %terms ]")
        self.put(self.total("%start", self.get(self.taps, "%tap")), self.offsets, "%term")
        after = self.total("%tap", "1")
        over = w.op(f"icmp eq i64 {after}, {given['taps']}")
        w.put(f"%tap.more = select i1 {over}, i64 0, i64 {after}")
        step = w.select(over, "i64", given["channel"], "0")
        w.put(f"%start.more = add i64 %start, {step}")
        w.put("%term.more = add i64 %term, 1")
        w.put(f"%term.on = icmp slt i64 %term.more, {count}")
        w.put("br i1 %term.on, label %terms, label %terms.end")
        w.label("terms.end")

    def tiles(self, left: str, vectors: str, near: str, kernel: str, others: str) -> None:
        """The call of the tile for so many rows, at most, and vectors."""
        w, heights = self.w, _heights(self.w.target)
        rows = self.least(left, str(heights[0]))
        after = w.fresh("tiled")
        for height, below in zip(heights, (*heights[1:], 0), strict=True):
            with when(w, w.op(f"icmp sgt i64 {rows}, {below}")):
                packed = w.op(f"xor i1 {near}, true")
                for wide in range(1, VECTORS + 1):
                    so_wide = w.op(f"icmp eq i64 {vectors}, {wide}")
                    with when(w, w.op(f"and i1 {packed}, {so_wide}")):
                        name = tile_name(self.symbol, height, wide, False)
                        w.put(f"call void @{name}({kernel}, i64 {rows}, {others})")
                with when(w, near):
                    name = tile_name(self.symbol, height, VECTORS, True)
                    w.put(f"call void @{name}({kernel}, i64 {rows}, {others})")
                w.put(f"br label %{after}")
                w.label(w.fresh("unreached"))
        w.put(f"br label %{after}")
        w.label(after)

    def hand_out(
        self, image: str, pixel: str, columns: str, own: str, top: str, bottom: str
    ) -> None:
        """Bring sums from the stack into the result: from each line what is kept of it."""
        w, given, cells = self.w, self.given, self.cells
        w.declare("void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        self.put("0", cells["done"])
        start = self.total(self.times(image, given["span"]), pixel)
        with each(w, "0", columns) as _:
            done = self.get(cells["done"])
            with when(w, w.op(f"icmp slt i64 {done}, {columns}")):
                one, place = self.split(self.total(start, done), given["span"])
                slab, place = self.split(place, given["slab"])
                number, column = self.split(place, given["pitch"])
                kept = w.op(f"icmp slt i64 {column}, {given['line']}")
                end = w.select(kept, "i64", given["line"], given["pitch"])
                length = self.least(
                    self.least(self.less(end, column), self.less(given["slab"], place)),
                    self.less(columns, done),
                )
                lines = self.total(self.times(slab, given["lines"]), number)
                first = self.total(self.times(lines, given["line"]), column)
                size = self.times(length, str(self.size))
                with when(w, kept), each(w, top, bottom) as row:
                    to = self.times(self.channel(one, self.total(own, row)), given["plane"])
                    to = self.at(self.y, self.total(to, first))
                    above = self.times(self.less(row, top), str(self.wide))
                    source = self.at(self.sums, self.total(above, done))
                    w.put(
                        f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, "
                        "i1 false)"
                    )
                self.put(self.total(done, length), cells["done"])

    # What they are made of.

    def channel(self, image: str, inner: str) -> str:
        """The number of an out channel of an image, among all."""
        outer = self.times(self.given["groups"], self.given["rows"])
        return self.total(self.times(image, outer), inner)
