"""A loop as one function: a single block goes through all rounds, and through the kernels of each.

A barrier of a block takes some fifty nanoseconds, where a node of a graph takes a microsecond and a
round of a graph that is repeated three or four. So a loop whose rounds touch few elements is
written as one function: its kernels become functions of their own that are given the number of the
block, and of the thread, that they would have been. Carries change places by exchanging pointers;
slices and stacks are read and written where they lie.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from tenfold.backends.cuda.emit.function import KernelText
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.functions import definitions
from tenfold.backends.llvm.text import Fragment, join
from tenfold.backends.llvm.writer import Writer
from tenfold.digest import sha256
from tenfold.frozen import frozen

POINTER = "ptr addrspace(1)"
_DEFINED = re.compile(
    r"define ptx_kernel void @(?P<name>\w+)\((?P<given>[^\n]*)\) nounwind [^\n]*\{\n"
    r"(?P<body>.*?)\n\}",
    re.DOTALL,
)
_CTAID = "call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()"
_TID = "call i32 @llvm.nvvm.read.ptx.sreg.tid.x()"
_NTID = "call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()"
_TEAM = ("@llvm.nvvm.barrier", "@llvm.nvvm.shfl", "@llvm.nvvm.vote", "addrspace(3)")
_SHARED = re.compile(r"addrspace\(3\) global \[(\d+) x (\w+)\]")
_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8, "half": 2, "bfloat": 2}
_LOOKED = 1023  # rounds, less one, between looks at the fault word: it lies in the host's memory
PLAIN = 256  # threads of a block where no kernel asks for a number


@frozen
class Part:
    """A kernel's function, to be called by a block of some loop. A `team` function has threads that
    work together: it is given whole blocks, others any threads."""

    name: str
    types: tuple[str, ...]  # of what it is given
    threads: int
    team: bool
    text: str


def parts_of(kernel: KernelText) -> dict[str, Part]:
    """The functions of a kernel by their names."""
    threads = {launch.name: launch.threads for launch in kernel.launches}
    found = {}
    for match in _DEFINED.finditer(kernel.fragment.body):
        name = match["name"]
        given = match["given"].replace(" noalias readonly", "")
        # What a round reads another has written: nothing is constant while the function runs.
        body = match["body"].replace(", !invariant.load !{}", "")
        team = any(word in body for word in _TEAM)
        for call, value in ((_CTAID, "%block"), (_TID, "%thread"), (_NTID, str(threads[name]))):
            body = body.replace(call, f"add i32 {value}, 0")
        listed = f"{given}, i32 %block, i32 %thread" if given else "i32 %block, i32 %thread"
        text = f"define internal void @{name}.part({listed}) alwaysinline nounwind {{\n{body}\n}}"
        types = tuple(_type(one) for one in given.split(", ")) if given else ()
        found[name] = Part(name, types, threads[name], team, text)
    return found


def _type(given: str) -> str:
    return POINTER if given.startswith(POINTER) else given.split(" ")[0]


def shared_bytes(kernels: Iterable[KernelText]) -> int:
    """The shared memory of all functions of some kernels."""
    lines = {line for k in kernels for line in k.fragment.declarations}
    found = (_SHARED.search(line) for line in lines)
    return sum(int(m[1]) * _BYTES.get(m[2], 8) for m in found if m)


# What a function is given: one of the loop's own arguments, by its number, or a pointer that moves,
# by its number, and how many bytes beyond it.
Static = int
Moving = tuple[int, int]


@frozen
class Call:
    """One call of a function in a round. `blocks` is one of the loop's arguments."""

    part: Part
    blocks: Static
    words: tuple[Static | Moving, ...]


@frozen
class Copy:
    """Bytes moved in a round, `unit` at a time: so many units, one of the loop's arguments."""

    target: Static | Moving
    source: Static | Moving
    units: Static
    unit: int


@frozen
class Carry:
    """A carry: where it lies at first, where in the end, and where every second round puts it; all
    are arguments. Its bytes are `units` of `unit`."""

    first: Static
    final: Static
    second: Static
    units: Static
    unit: int


@frozen
class Sliced:
    """What moves by so many bytes a round: its start and that number are arguments."""

    start: Static
    step: Static


Item = Call | Copy


@frozen
class BlockLoop:
    """A loop to be written: the kinds of its arguments, what moves (carries as they are read, then
    as they are written, then slices and stacks), and the work of a round. Without a `flag`, the
    argument that says where its condition lies, its rounds are counted up to the argument
    `length`."""

    types: tuple[str, ...]
    carries: tuple[Carry, ...]
    sliced: tuple[Sliced, ...]
    condition: tuple[Item, ...]
    round: tuple[Item, ...]
    threads: int
    fault: Static
    length: Static | None = None
    flag: Static | None = None
    reverse: bool = False


def loop_text(
    loop: BlockLoop, kernels: Sequence[KernelText], target: CudaTarget
) -> tuple[str, str]:
    """The name of the function, and the text of its module."""
    writer = _LoopWriter(loop, target)
    body = writer.text()
    calls = [item.part for item in (*loop.condition, *loop.round) if isinstance(item, Call)]
    parts = "\n".join(dict.fromkeys(part.text for part in calls))
    name = f"tn_loop_{sha256((parts + body).encode()).hexdigest()[:32]}"
    lines = dict.fromkeys(line for k in kernels for line in k.fragment.declarations)
    declared = [line for line in lines if "sreg" not in line]
    maths = sorted(frozenset().union(*(k.maths for k in kernels)))
    own = Fragment((*declared, *sorted(writer.w.declared), *writer.shared),
                   f"{parts}\n{body.replace('@loop.(', f'@{name}(')}")  # fmt: skip
    return name, join([own, *definitions(maths, target.llvm)])


class _LoopWriter:
    def __init__(self, loop: BlockLoop, target: CudaTarget) -> None:
        self.loop, self.w = loop, Writer(target.llvm)
        self.moving: list[str] = []
        self.shared = ("@tn_loop.fault = internal addrspace(3) global [1 x i32] undef, align 4",)

    def text(self) -> str:
        loop, w = self.loop, self.w
        w.label("entry")
        self.me = w.call("i32", "llvm.nvvm.read.ptx.sreg.tid.x")
        before, head, body, done = w.block, w.fresh("head"), w.fresh("body"), w.fresh("done")
        w.put(f"br label %{head}")
        w.label(head)
        number = f"%{w.fresh('round')}"
        now = [f"%{w.fresh('now')}" for _ in loop.carries]
        following = [f"%{w.fresh('next')}" for _ in loop.carries]
        phis = len(w.lines)
        w.lines.append("")
        self._go_on(number, now, following, body, done)
        self.moving = [*now, *following, *self._slices(number)]
        for item in loop.round:
            self._do(item)
        later = w.op(f"add i64 {number}, 1")
        after = [
            w.op(
                f"select i1 {w.op(f'icmp eq {POINTER} {n}, {self._word(c.final)}')}, "
                f"{POINTER} {self._word(c.second)}, {POINTER} {self._word(c.final)}"
            )
            for n, c in zip(following, loop.carries, strict=True)
        ]
        latch = w.block
        w.put(f"br label %{head}")
        lines = [f"  {number} = phi i64 [ 0, %{before} ], [ {later}, %{latch} ]"]
        first = self._first()
        for n, c, made in zip(now, loop.carries, following, strict=True):
            given = self._word(c.first)
            lines.append(f"  {n} = phi {POINTER} [ {given}, %{before} ], [ {made}, %{latch} ]")
        for n, begin, made in zip(following, first, after, strict=True):
            lines.append(f"  {n} = phi {POINTER} [ {begin}, %{before} ], [ {made}, %{latch} ]")
        w.lines[phis] = "\n".join(lines)
        w.label(done)
        for n, c in zip(now, loop.carries, strict=True):
            self._copied(self._word(c.final), n, self._word(c.units), c.unit)
        w.put("ret void")
        given = ", ".join(
            f"{ty} align {_aligned(ty)} %a{n}" if ty == POINTER else f"{ty} %a{n}"
            for n, ty in enumerate(loop.types)
        )
        line = f'define ptx_kernel void @loop.({given}) nounwind "nvvm.maxntid"="{loop.threads}" {{'
        return "\n".join((line, *self._entry(w.lines), "}"))

    def _first(self) -> list[str]:
        """Where the first round puts carries: not where it finds them."""
        return [f"%first.{n}" for n in range(len(self.loop.carries))]

    def _entry(self, lines: list[str]) -> list[str]:
        """The lines with what is computed before the loop."""
        made = [lines[0]]
        for n, c in enumerate(self.loop.carries):
            same = f"%same.{n}"
            made.append(
                f"  {same} = icmp eq {POINTER} {self._word(c.first)}, {self._word(c.final)}"
            )
            made.append(
                f"  %first.{n} = select i1 {same}, {POINTER} {self._word(c.second)}, "
                f"{POINTER} {self._word(c.final)}"
            )
        return made + lines[1:]

    def _word(self, number: Static) -> str:
        return f"%a{number}"

    def _go_on(
        self, number: str, now: Sequence[str], following: Sequence[str], body: str, done: str
    ) -> None:
        """Go on with a round, or end. Now and then the fault word is looked at, by one thread."""
        loop, w = self.loop, self.w
        look, ask = w.fresh("look"), w.fresh("ask")
        masked = w.op(f"and i64 {number}, {_LOOKED}")
        w.put(f"br i1 {w.op(f'icmp eq i64 {masked}, {_LOOKED}')}, label %{look}, label %{ask}")
        w.label(look)
        one, told = w.fresh("one"), w.fresh("told")
        w.put(f"br i1 {w.op(f'icmp eq i32 {self.me}, 0')}, label %{one}, label %{told}")
        w.label(one)
        found = w.op(f"load volatile i32, {POINTER} {self._word(loop.fault)}, align 4")
        w.put(f"store i32 {found}, ptr addrspace(3) @tn_loop.fault, align 4")
        w.put(f"br label %{told}")
        w.label(told)
        self._wait()
        fault = w.op("load i32, ptr addrspace(3) @tn_loop.fault, align 4")
        self._wait()
        w.put(f"br i1 {w.op(f'icmp eq i32 {fault}, 0')}, label %{ask}, label %{done}")
        w.label(ask)
        if loop.flag is None:
            assert loop.length is not None
            going = w.op(f"icmp slt i64 {number}, {self._word(loop.length)}")
        else:
            self.moving = [*now, *following]
            for item in loop.condition:
                self._do(item)
            flag = w.op(f"load i8, {POINTER} {self._word(loop.flag)}, align 1")
            self._wait()  # before the next round asks again
            going = w.op(f"icmp ne i8 {flag}, 0")
        w.put(f"br i1 {going}, label %{body}, label %{done}")
        w.label(body)

    def _slices(self, number: str) -> list[str]:
        loop, w = self.loop, self.w
        turn = number
        if loop.reverse:
            assert loop.length is not None
            left = w.op(f"sub i64 {self._word(loop.length)}, {number}")
            turn = w.op(f"sub i64 {left}, 1")
        found = []
        for one in loop.sliced:
            by = w.op(f"mul i64 {turn}, {self._word(one.step)}")
            found.append(w.op(f"getelementptr i8, {POINTER} {self._word(one.start)}, i64 {by}"))
        return found

    def _pointer(self, word: Static | Moving) -> str:
        if isinstance(word, int):
            return self._word(word)
        number, offset = word
        at = self.moving[number]
        return self.w.op(f"getelementptr i8, {POINTER} {at}, i64 {offset}") if offset else at

    def _wait(self) -> None:
        """Wait for all threads of the block, which is all there are."""
        w = self.w
        w.declared.add("declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)")
        w.put("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)")

    def _do(self, item: Item) -> None:
        """One step of a round, and a barrier."""
        if isinstance(item, Copy):
            units = self._word(item.units)
            self._copied(self._pointer(item.target), self._pointer(item.source), units, item.unit)
            self._wait()
            return
        part, w = item.part, self.w
        given = [
            f"{ty} {self._pointer(word) if ty == POINTER else self._word(word)}"  # type: ignore[arg-type]
            for ty, word in zip(part.types, item.words, strict=True)
        ]
        blocks = self._word(item.blocks)

        def call(block: str, thread: str) -> None:
            listed = ", ".join((*given, f"i32 {block}", f"i32 {thread}"))
            w.put(f"call void @{part.name}.part({listed})")

        if part.team:

            def whole(block: str) -> None:
                call(block, self.me)
                self._wait()

            self._repeated("0", blocks, "1", whole)
            return
        every = w.op(f"mul i32 {blocks}, {part.threads}")

        def one(at: str) -> None:
            call(w.op(f"udiv i32 {at}, {part.threads}"), w.op(f"urem i32 {at}, {part.threads}"))

        self._repeated(self.me, every, str(self.loop.threads), one)
        self._wait()

    def _copied(self, target: str, source: str, units: str, unit: int) -> None:
        """Bytes moved by all threads, unless they are there."""
        w, ty = self.w, {1: "i8", 4: "i32", 16: "<4 x i32>"}[unit]
        same = w.op(f"icmp eq {POINTER} {target}, {source}")
        count = w.op(f"select i1 {same}, i32 0, i32 {units}")

        def one(at: str) -> None:
            place = w.op(f"getelementptr {ty}, {POINTER} {source}, i32 {at}")
            found = w.op(f"load {ty}, {POINTER} {place}, align {unit}")
            place = w.op(f"getelementptr {ty}, {POINTER} {target}, i32 {at}")
            w.put(f"store {ty} {found}, {POINTER} {place}, align {unit}")

        self._repeated(self.me, count, str(self.loop.threads), one)

    def _repeated(self, first: str, stop: str, step: str, work: Callable[[str], None]) -> None:
        """Some work for each number from the first on, as long as it lies below another."""
        w = self.w
        before, head, body, end = w.block, w.fresh("head"), w.fresh("body"), w.fresh("end")
        w.put(f"br label %{head}")
        w.label(head)
        at = f"%{w.fresh('at')}"
        phi = len(w.lines)
        w.lines.append("")
        w.put(f"br i1 {w.op(f'icmp slt i32 {at}, {stop}')}, label %{body}, label %{end}")
        w.label(body)
        work(at)
        later = w.op(f"add i32 {at}, {step}")
        w.lines[phi] = f"  {at} = phi i32 [ {first}, %{before} ], [ {later}, %{w.block} ]"
        w.put(f"br label %{head}")
        w.label(end)


def _aligned(ty: str) -> int:
    """Arguments are whatever arrays there are: only the text of kernels says more of them."""
    return 1
