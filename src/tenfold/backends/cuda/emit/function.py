"""Functions of a kernel: what they are given, and how they are launched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tenfold.backends.cuda.emit.pairs import close, paired
from tenfold.backends.cuda.emit.thread import Text, Thread
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.functions import shared as shorten
from tenfold.backends.llvm.text import Fragment
from tenfold.backends.llvm.writer import MEMORY, SIZES, Writer
from tenfold.digest import sha256
from tenfold.frozen import frozen
from tenfold.kernel.ir.kernel import READ, Kernel
from tenfold.kernel.ir.legal import in_memory
from tenfold.kernel.ir.number import Facts, Number

_NUMBER = re.compile(r"%n(\d+)(\.i32)?(?![\w.])")
_DEFINED = re.compile(r"^define ptx_kernel void @([\w.]+)\(", re.MULTILINE)
_PARAM = re.compile(r"%p(\d+)\.(\d)")
ALIGNED = 16  # bytes: what buffers begin at multiples of
ARRIVED = 4096  # bytes before partial results, that count blocks: zero before a kernel and after it


@frozen
class Given:
    """What one parameter of a function is: a `buffer`, a `param` of the kernel with its part, a
    `number` of its facts in 4 or 8 bytes, one that is `known`, room for `partial` results, or
    the `fault` word."""

    kind: str
    number: int = 0
    part: int = 0  # of a complex parameter; the bytes of a number


@frozen
class Launch:
    """One function and how it is launched: so many blocks, a place among the numbers of its facts
    or negative and then known, of so many threads."""

    name: str
    blocks: int
    threads: int
    given: tuple[Given, ...]
    cluster: int = 1


@frozen
class KernelText:
    """A kernel as text: its functions, in the order in which they are launched, the functions of
    mathematics that they call, and how many bytes of partial results they share."""

    fragment: Fragment
    maths: frozenset[tuple[str, str, int]]
    launches: tuple[Launch, ...]
    partial: int = -1  # the bytes, as `blocks` are
    common: tuple[Fragment, ...] = ()  # functions that other kernels may have, too

    @property
    def name(self) -> str:
        return self.launches[0].name

    @property
    def size(self) -> int:
        return self.fragment.body.count("\n")


def place(number: Any, facts: Facts) -> int:
    """A count as a launch has it: where it stands among the numbers, or known and negative."""
    return number.at if isinstance(number, Number) else -1 - int(number)


class FunctionWriter:
    """The text of one function on its way."""

    def __init__(self, kernel: Kernel, target: CudaTarget, odd: frozenset[int]) -> None:
        self.kernel, self.target, self.odd = kernel, target, odd
        self.w = Writer(target.llvm)
        self.w.label("entry")
        self.memory: list[str] = []  # lines that reserve a thread's own
        self.shared: list[str] = []  # and a block's
        self.cluster = 1  # blocks of a cluster
        self.schedule = ""  # how it is laid over threads: a part of its name, for who looks on
        self.partial = False  # whether it is given room for partial results
        self.common = False  # whether other kernels have the same function
        self.words: list[Any] = []

    def thread(self) -> Thread:
        """What the code of a thread begins with."""
        pairs, instead = paired(self.kernel, self.target)
        near = close(self.kernel, self.target)
        return Thread(
            self.kernel,
            self.w,
            odd=self.odd,
            pairs=pairs,
            instead=instead,
            close=near,
        )

    def sreg(self, name: str) -> Text:
        """One of the registers that say which thread this is."""
        return self.w.call("i32", f"llvm.nvvm.read.ptx.sreg.{name}")

    def reserve(self, ty: str, count: int) -> str:
        """Shared memory for so many elements: its name."""
        name = f"@local.shared.{len(self.shared)}"
        self.shared.append(
            f"{name} = internal addrspace(3) global [{count} x {ty}] undef, align 16"
        )
        return name

    def word(self, value: Any) -> Text:
        """A number as a parameter of 64 bits, so that the text does not hang on it."""
        self.words.append(value)
        return f"%k{len(self.words) - 1}"

    def finish(self, threads: int, least: int = 1) -> tuple[str, str, tuple[Given, ...]]:
        """The body of the function as text, what is to stand before it, and its parameters. At
        `least` so many of its blocks are meant to share a processor."""
        w, kernel = self.w, self.kernel
        w.put("ret void")
        text = "\n".join(w.lines)
        given: list[tuple[Given, str]] = []
        before: list[str] = []
        for n, b in enumerate(kernel.buffers):
            if not re.search(rf"%b{n}(?!\d)", text):
                continue
            kept = " noalias readonly" if b.role == READ and not b.alias else ""
            align = SIZES[b.dtype] if n in self.odd else ALIGNED
            given.append((Given("buffer", n), f"ptr addrspace(1){kept} align {align} %b{n}"))
        for number, part in sorted({(int(a), int(b)) for a, b in _PARAM.findall(text)}):
            dtype = in_memory(kernel.params[number])[part]
            name = f"%p{number}.{part}"
            if dtype == "bool":
                before.append(f"  {name} = icmp ne i8 {name}.raw, 0")
                name += ".raw"
            given.append((Given("param", number, part), f"{MEMORY[dtype]} {name}"))
        for at, short in sorted(set(_NUMBER.findall(text)), key=lambda f: (int(f[0]), f[1])):
            size = 4 if short else 8
            ty = "i32" if short else "i64"
            given.append((Given("number", int(at), size), f"{ty} %n{at}{short}"))
        for n, word in enumerate(self.words):
            known = not isinstance(word, Number)
            one = Given("known", int(word), 8) if known else Given("number", word.at, 8)
            given.append((one, f"i64 %k{n}"))
        if self.partial:
            given.append((Given("partial"), f"ptr addrspace(1) align {ALIGNED} %partial"))
        if "%fault" in text:
            given.append((Given("fault"), "ptr addrspace(1) align 4 %fault"))
        listed = ", ".join(one for _, one in given)
        attributes = f'"nvvm.maxntid"="{threads}"'
        if least > 1:
            attributes += f' "nvvm.minctasm"="{least}"'
        if self.cluster > 1:
            attributes += f' "nvvm.cluster_dim"="{self.cluster},1,1"'
        head = f"define ptx_kernel void @local.({listed}) nounwind {attributes} {{"
        lines = [head, w.lines[0], *self.memory, *before, *w.lines[1:], "}", ""]
        return "\n".join(lines), "\n".join(self.shared), tuple(one for one, _ in given)


def together(first: KernelText, second: KernelText) -> KernelText:
    """A kernel of the functions of two, of which the second shares no memory. Those of its own are
    named by all of theirs."""
    texts = (first, second)
    salt = "".join(text.fragment.body for text in texts)
    bodies, declared, launches = [], dict[str, None](), []
    for text in texts:
        shared = {name for one in text.common for name in _DEFINED.findall(one.body)}
        lines, body = "\n".join(text.fragment.declarations), text.fragment.body
        for launch in text.launches:
            if launch.name not in shared:
                front = launch.name.rpartition("_")[0]
                name = f"{front}_{sha256((salt + launch.name).encode()).hexdigest()[:32]}"
                lines, body = (x.replace(launch.name, name) for x in (lines, body))
                launch = replace(launch, name=name)
            launches.append(launch)
        declared.update(dict.fromkeys(lines.split("\n") if lines else ()))
        bodies.append(body)
    return KernelText(
        Fragment(tuple(declared), "\n".join(bodies)),
        first.maths | second.maths,
        tuple(launches),
        first.partial,
        (*first.common, *second.common),
    )


def finish(
    functions: Sequence[tuple[FunctionWriter, int, Any, int]],
    facts: Facts,
    partial: Any = 0,
) -> KernelText:
    """A kernel of some functions, each with its threads a block, its blocks and how many of them
    are to share a processor. Functions are named by their text; where a kernel has several of its
    own, by all of theirs, so that each name is one kernel's."""
    launches, maths = [], set[tuple[str, str, int]]()
    declared, bodies, common = dict[str, None](), dict[str, str](), dict[Fragment, None]()
    made = [own.finish(threads, least) for own, threads, _, least in functions]
    alone = [shared + body for (own, *_), (body, shared, _) in zip(functions, made, strict=True)
             if not own.common]  # fmt: skip
    salt = "".join(alone) if len(alone) > 1 else ""
    for (own, threads, blocks, _), (body, shared, given) in zip(functions, made, strict=True):
        body, needed = shorten(body, frozenset(own.w.maths), own.target.llvm)
        text = ("" if own.common else salt) + shared + body
        named = f"{own.schedule}_" if own.schedule else ""
        name = f"tn_{named}{sha256(text.encode()).hexdigest()[:32]}"
        body = body.replace("@local.(", f"@{name}(").replace("@local.", f"@{name}.")
        lines = shared.replace("@local.", f"@{name}.").split("\n") if shared else []
        lines += sorted(own.w.declared)
        if own.common:
            common[Fragment(tuple(lines), body)] = None
        else:
            declared.update(dict.fromkeys(lines))
            bodies[name] = body
        maths |= needed
        launches.append(Launch(name, place(blocks, facts), threads, given, own.cluster))
    fragment = Fragment(tuple(declared), "\n".join(bodies.values()))
    return KernelText(
        fragment, frozenset(maths), tuple(launches), place(partial, facts), tuple(common)
    )
