"""Products of a matrix and a vector: each element of the matrix is read once, so all that counts is
to have enough of it on its way.

- `rows`: the terms of a result lie side by side. A warp has a result, or a block where there are
  fewer than `ROWS`; each thread adds up every so many terms, four accesses at a time, and the
  threads' sums are added as a balanced tree.
- `columns`: results lie side by side. A block has 32 of them, and 32 threads for each, which add up
  every 32nd term; their sums are added as a balanced tree.
"""

from __future__ import annotations

from collections.abc import Callable

from tenfold.backends.cuda.emit.memory import guarded
from tenfold.backends.cuda.emit.team import exchange, wait
from tenfold.backends.cuda.library.arithmetic import SHARED, Arithmetic, Parts
from tenfold.backends.cuda.library.routine import GpuRoutine, RoutineLaunch
from tenfold.backends.cuda.library.tiles import arrays, store_if, wide
from tenfold.backends.cuda.target import WARP, CudaTarget
from tenfold.backends.llvm.text import Fragment
from tenfold.backends.llvm.writer import SIZES, Writer
from tenfold.backends.matrices import MatrixProduct

ROWS = 2048  # results from which on a warp has one
DTYPES = ("f32", "f64", "f16", "bf16")
_BLOCK, _ACROSS = 256, 32  # threads of a block of rows; results, and threads each, of columns
_AHEAD, _COUNT = 4, 4  # accesses of a thread at a time; elements of one, at most


def has_vector(p: MatrixProduct) -> bool:
    """Whether one operand is a vector, of a dtype that is multiplied here."""
    return p.batch == 1 and min(p.m, p.n) == 1 and set(p.dtypes) <= set(DTYPES)


def vector_routine(p: MatrixProduct, aligned: bool) -> GpuRoutine:
    """A product of a matrix and a vector."""
    dtype, size = p.dtype, SIZES[p.dtype]
    results = max(p.m, p.n)
    # Where both are vectors, either is the matrix.
    matrix, apart = (0, p.left) if p.n == 1 else (1, not p.right)
    given = (matrix, 1 - matrix, 2)
    words = tuple((word, 8) for word in (results, p.k))
    if apart and results > 1:
        name = f"tn_columns_{dtype}"
        launch = RoutineLaunch(name, -(-results // _ACROSS), _ACROSS * _ACROSS, given, words)
        return GpuRoutine(lambda target: _Columns(name, dtype, target).text(), name, (launch,))
    count = min(_COUNT, 16 // size)
    count = count if aligned and p.k % count == 0 else 1
    team = WARP if results >= ROWS else _BLOCK
    name = f"tn_rows_{dtype}_{team}_{count}"
    blocks = -(-results // (_BLOCK // team))
    launch = RoutineLaunch(name, blocks, _BLOCK, given, words)
    return GpuRoutine(
        lambda target: _Rows(name, dtype, target, team, count).text(), name, (launch,)
    )


class _VectorWriter:
    """What both ways share."""

    def __init__(self, name: str, dtype: str, target: CudaTarget) -> None:
        self.name, self.dtype = name, dtype
        self.w = Writer(target.llvm)
        self.sums = Arithmetic(self.w, dtype)
        self.shared: list[str] = []

    def finish(self, threads: int, align: int) -> Fragment:
        size = SIZES[self.dtype]
        given = arrays([("matrix", align), ("vector", align), ("result", size)])
        head = (
            f"define ptx_kernel void @{self.name}({given}, i64 %n, i64 %k) nounwind "
            f'"nvvm.maxntid"="{threads}" {{'
        )
        self.w.put("ret void")
        body = "\n".join((head, *self.w.lines, "}"))
        return Fragment((*self.shared, *sorted(self.w.declared)), body)

    def reserve(self, count: int) -> str:
        memory = f"@{self.name}.sums"
        self.shared.append(
            f"{memory} = internal addrspace(3) global [{count} x {self.sums.ty}] undef, align 16"
        )
        return memory

    def loop(
        self, first: str, step: int, lanes: int, add: Callable[[list[Parts], str], list[Parts]]
    ) -> list[Parts]:
        """The sums of so many lanes, by a body that adds to them the terms from a number on: from
        `first`, then from `step` further. All threads go round as often."""
        w, sums = self.w, self.sums
        before, head, end = w.block, w.fresh("loop"), w.fresh("end")
        w.put(f"br label %{head}")
        w.label(head)
        start = f"%{w.fresh('k')}"
        held = [[f"%{w.fresh('s')}"] for _ in range(lanes)]
        phis = len(w.lines)
        w.lines.append("")
        found = add(held, w.op(f"add i64 {start}, {first}"))
        following = w.op(f"add i64 {start}, {step}")
        latch = w.block
        w.put(f"br i1 {w.op(f'icmp slt i64 {following}, %k')}, label %{head}, label %{end}")
        lines = [f"  {start} = phi i64 [ 0, %{before} ], [ {following}, %{latch} ]"]
        lines += [
            f"  {a} = phi {sums.ty} [ {sums.zero}, %{before} ], [ {b}, %{latch} ]"
            for (a,), (b,) in zip(held, found, strict=True)
        ]
        w.lines[phis] = "\n".join(lines)
        w.label(end)
        return found

    def near(self, x: str, extent: str, step: int = 1) -> tuple[str, str]:
        """A place or the last that there is, and whether it is there."""
        w = self.w
        last = w.op(f"sub i64 {extent}, {step}")
        inside = w.op(f"icmp sle i64 {x}, {last}")
        return w.select(inside, "i64", x, last), inside

    def tree(self, values: list[Parts]) -> Parts:
        while len(values) > 1:
            half = len(values) // 2
            joined = [self.sums.total(values[n], values[n + half]) for n in range(half)]
            values = joined + values[2 * half :]
        return values[0]


class _Rows(_VectorWriter):
    def __init__(self, name: str, dtype: str, target: CudaTarget, team: int, count: int) -> None:
        super().__init__(name, dtype, target)
        self.team, self.count = team, count

    def text(self) -> Fragment:
        w, team, count, dtype = self.w, self.team, self.count, self.dtype
        w.label("entry")
        thread = w.call("i32", "llvm.nvvm.read.ptx.sreg.tid.x")
        block = wide(w, w.call("i32", "llvm.nvvm.read.ptx.sreg.ctaid.x"))
        own = wide(w, w.op(f"lshr i32 {thread}, {team.bit_length() - 1}"))
        row = w.op(f"add i64 {w.op(f'mul i64 {block}, {_BLOCK // team}')}, {own}")
        me = w.op(f"and i32 {thread}, {team - 1}")
        here, there = self.near(row, "%n")
        line = self.sums.place(dtype, "%matrix", w.op(f"mul i64 {here}, %k"))
        first = wide(w, w.op(f"mul i32 {me}, {count}"))

        def add(held: list[Parts], start: str) -> list[Parts]:
            read: list[tuple[str, list[Parts], list[Parts]]] = []
            for n in range(_AHEAD):
                at = w.op(f"add i64 {start}, {n * team * count}") if n else start
                at, inside = self.near(at, "%k", count)
                a, b = (
                    self.sums.load(dtype, self.sums.place(dtype, base, at), count)
                    for base in (line, "%vector")
                )
                read.append((inside, a, b))
            found = list(held)
            for n, (inside, a, b) in enumerate(read):
                for e in range(count):
                    left, right = (self.sums.chosen(inside, x) for x in (a[e], b[e]))
                    lane = n * count + e
                    found[lane] = self.sums.add_product(found[lane], left, right)
            return found

        sums = self.tree(self.loop(first, _AHEAD * team * count, _AHEAD * count, add))
        for step in (1, 2, 4, 8, 16):
            sums = self.sums.total(sums, [exchange(w, self.sums.ty, sums[0], step)])
        if team > WARP:
            sums = self._joined(thread, sums)
        place = self.sums.place(dtype, "%result", here)
        test = w.op(f"and i1 {there}, {w.op(f'icmp eq i32 {me}, 0')}")
        store_if(w, test, self.sums, place, [sums])
        return self.finish(_BLOCK, SIZES[dtype] * count)

    def _joined(self, thread: str, sums: Parts) -> Parts:
        """The sum of all warps of a block."""
        w, ty, warps = self.w, self.sums.ty, _BLOCK // WARP
        memory = self.reserve(warps)
        at = w.op(f"getelementptr {ty}, {SHARED} {memory}, i32 {w.op(f'lshr i32 {thread}, 5')}")
        lane = w.op(f"and i32 {thread}, {WARP - 1}")

        def kept() -> list[str]:
            w.put(f"store {ty} {sums[0]}, {SHARED} {at}, align {self.sums.size}")
            return []

        guarded(w, w.op(f"icmp eq i32 {lane}, 0"), kept, [])
        wait(w)
        found: list[Parts] = []
        for n in range(warps):
            place = w.op(f"getelementptr {ty}, {SHARED} {memory}, i32 {n}")
            found.append([w.op(f"load {ty}, {SHARED} {place}, align {self.sums.size}")])
        return self.tree(found)


class _Columns(_VectorWriter):
    def text(self) -> Fragment:
        w, ty, dtype = self.w, self.sums.ty, self.dtype
        w.label("entry")
        thread = w.call("i32", "llvm.nvvm.read.ptx.sreg.tid.x")
        block = wide(w, w.call("i32", "llvm.nvvm.read.ptx.sreg.ctaid.x"))
        lane = w.op(f"and i32 {thread}, {_ACROSS - 1}")
        turn = w.op(f"lshr i32 {thread}, {_ACROSS.bit_length() - 1}")
        column = w.op(f"add i64 {w.op(f'mul i64 {block}, {_ACROSS}')}, {wide(w, lane)}")
        here, there = self.near(column, "%n")
        top = self.sums.place(dtype, "%matrix", here)

        def add(held: list[Parts], start: str) -> list[Parts]:
            read: list[tuple[str, Parts, Parts]] = []
            for n in range(_AHEAD):
                at = w.op(f"add i64 {start}, {n * _ACROSS}") if n else start
                at, inside = self.near(at, "%k")
                far = self.sums.place(dtype, top, w.op(f"mul i64 {at}, %n"))
                factor = self.sums.place(dtype, "%vector", at)
                a, b = (self.sums.load(dtype, place, 1)[0] for place in (far, factor))
                read.append((inside, a, b))
            found = list(held)
            for n, (inside, a, b) in enumerate(read):
                left, right = (self.sums.chosen(inside, x) for x in (a, b))
                found[n] = self.sums.add_product(found[n], left, right)
            return found

        sums = self.tree(self.loop(wide(w, turn), _AHEAD * _ACROSS, _AHEAD, add))
        memory = self.reserve(_ACROSS * _ACROSS)
        at = w.op(f"getelementptr {ty}, {SHARED} {memory}, i32 {thread}")
        w.put(f"store {ty} {sums[0]}, {SHARED} {at}, align {self.sums.size}")
        wait(w)
        base = w.op(f"getelementptr {ty}, {SHARED} {memory}, i32 {lane}")
        values: list[Parts] = []
        for n in range(_ACROSS):
            place = w.op(f"getelementptr {ty}, {SHARED} {base}, i32 {n * _ACROSS}")
            values.append([w.op(f"load {ty}, {SHARED} {place}, align {self.sums.size}")])
        test = w.op(f"and i1 {there}, {w.op(f'icmp eq i32 {turn}, 0')}")
        store_if(w, test, self.sums, self.sums.place(dtype, "%result", here), [self.tree(values)])
        return self.finish(_ACROSS * _ACROSS, SIZES[dtype])
