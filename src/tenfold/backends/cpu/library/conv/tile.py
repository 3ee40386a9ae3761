"""The inner loop of a convolution: a tile of the result in registers.

A tile is so many out channels (rows) by so many vectors of columns. For each term a vector of a
panel, or of the input, meets the kernel's own element of each row, so terms are added one after the
other, in the kernel's order, on every target.
"""

from __future__ import annotations

from tenfold.backends.cpu.library.lanes import Lanes
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.writer import Writer

VECTORS = 3  # of columns in a tile


def rows_of(target: LLVMTarget) -> int:
    """The rows of a tile: as many as registers hold, beside a panel's vectors and an element."""
    many = target.vector_bytes == 64 or target.arch in ("aarch64", "arm64")  # 32 registers
    return 8 if many else 4


def pitch_of(target: LLVMTarget) -> int:
    """Vectors from a row of a panel to the next: one more where what is packed last reaches beyond
    its row (`panel`)."""
    return VECTORS if target.masked else VECTORS + 1


def rows_near(target: LLVMTarget) -> int:
    """How many rows may see the input as it lies: more of them read it more often, line by line
    from farther away, than packing takes."""
    return 128 if rows_of(target) == 8 else 32


def tile_name(symbol: str, rows: int, vectors: int, near: bool) -> str:
    return f"{symbol}_{rows}x{vectors}{'_near' if near else ''}"


def tile(symbol: str, element: str, rows: int, vectors: int, near: bool, w: Writer) -> str:
    """A function that adds terms to a tile at %c, or sets it out where these are the first.

    What it sees is a packed panel; or, if `near`, the input itself, by the offset of each term.
    There are %valid rows; the last one stands for those that are missing, and is stored again.
    """
    made = Lanes(element, w)
    ty, lanes = made.type, made.lanes
    places = [(r, v) for r in range(rows) for v in range(vectors)]
    w.block = "entry"
    last = made.less("%valid", "1")
    starts, targets = [], []
    for r in range(rows):
        row = made.least(str(r), last)
        starts.append(made.at("%a", made.times(row, "%lda")))
        targets.append(made.at("%c", made.times(row, "%ldc")))
    w.put("br i1 %first, label %terms, label %more")
    w.label("more")
    here = {
        (r, v): masks.load(w, made.at(targets[r], str(v * lanes)), element, None, lanes)
        for r, v in places
    }
    w.put("br label %terms")
    w.label("terms")
    w.put("%i = phi i64 [ 0, %entry ], [ 0, %more ], [ %i.more, %terms ]")
    for r, v in places:
        w.put(
            f"%s{r}.{v} = phi {ty} [ zeroinitializer, %entry ], [ {here[r, v]}, %more ], "
            f"[ %t{r}.{v}, %terms ]"
        )
    row = made.get("%offsets", "%i") if near else made.times("%i", str(pitch_of(w.target) * lanes))
    panel = made.at("%b", row)
    seen = [
        masks.load(w, made.at(panel, str(v * lanes)), element, None, lanes) for v in range(vectors)
    ]
    for r in range(rows):
        factor = made.every_lane(made.at(starts[r], "%i"))
        for v in range(vectors):
            made.add_product(factor, seen[v], f"%s{r}.{v}", f"%t{r}.{v}")
    w.put("%i.more = add nuw i64 %i, 1")
    w.put("%i.on = icmp ult i64 %i.more, %count")
    w.put("br i1 %i.on, label %terms, label %end")
    w.label("end")
    for r, v in places:
        masks.store(w, made.at(targets[r], str(v * lanes)), element, f"%t{r}.{v}", None, lanes)
    w.put("ret void")
    return f"""
define internal void @{tile_name(symbol, rows, vectors, near)}(
  ptr noalias %a, i64 %lda, i64 %valid, ptr noalias %b, i64 %count, ptr noalias %c, i64 %ldc,
  i1 %first, ptr noalias %offsets) noinline nounwind "prefer-vector-width"="512" {{
entry:
{w.taken()}}}
"""
