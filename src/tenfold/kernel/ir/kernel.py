"""The Kernel: axes, buffers and a flat list of scalar instructions; all that a backend sees.

Loops are not stored. Each instruction has a set of free axes and stands at the outermost level
that binds them; a reduction's result has its operands' axes less its own. How the loops are
ordered, vectorised and cut is a schedule, chosen by each backend for its target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import msgpack

from tenfold.digest import sha256
from tenfold.errors import GraphError
from tenfold.frozen import frozen
from tenfold.kernel.ir.index import AXIS, VALUE, Atom, Index
from tenfold.kernel.ir.number import Size
from tenfold.types import DTYPES

PARALLEL, REDUCED, SEQUENTIAL = "parallel", "reduced", "sequential"
READ, WRITE, BOTH, SCRATCH = "read", "write", "both", "scratch"

# Elementwise instructions and how many operands each takes. `not` is logical for bool, bitwise
# for integers; `max` and `min` keep NaN, `fmax` and `fmin` drop it; `mod` has the divisor's
# sign, `fmod` the dividend's. Integer arithmetic wraps; `floordiv`, `mod` and `fmod` by zero
# give 0; shifts by a negative amount or by the width and more give 0, or the sign for `shr`.
_UNARY = """
    neg abs sign floor ceil trunc round sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin
    acos atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc cbrt rsqrt not isnan isinf
    isfinite signbit popcount real imag conj
"""
_BINARY = """
    add sub mul div floordiv mod fmod pow max min fmax fmin atan2 hypot logaddexp copysign
    nextafter eq ne lt le gt ge and or xor shl shr complex
"""
_COSTLY = """
    pow exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh
    atanh sigmoid erf erfc cbrt atan2 hypot logaddexp
"""
_TRUTHS = "eq ne lt le gt ge isnan isinf isfinite signbit"
ELEMENTWISE: dict[str, int] = dict.fromkeys(_UNARY.split(), 1) | dict.fromkeys(_BINARY.split(), 2)
COMPARISONS = frozenset(_TRUTHS.split())
TRANSCENDENTAL = frozenset(_COSTLY.split())
UPDATES = ("add", "mul", "max", "min")  # how a store may join a value to what is there
REDUCTIONS = ("sum", "prod", "min", "max", "any", "all", "argmin", "argmax")

# The instructions that are not elementwise:
#   load    attr (buffer,)        args (condition,)?  index   0 where the condition fails
#   const   attr (raw bytes,)
#   param   attr (number,)                                     a scalar given at run time
#   index                                             index   the index as a value
#   inside  attr (low, high)                          index   low <= index < high
#   select                        args (condition, yes, no)
#   cast, bitcast                 args (x,)                    casts to integers saturate
#   reduce  attr (kind, *axes)    args (value,) or (value, position) for argmin, argmax
#   state   attr (number,)        args (reduce,)               a reduction's further result
_OTHER = "load const param index inside select cast bitcast reduce state"
OTHERS = tuple(_OTHER.split())


@frozen
class Axis:
    """One axis of the iteration space."""

    extent: int
    kind: str = PARALLEL


@frozen
class Buffer:
    """Memory the kernel touches, as flat elements.

    Buffers with the same `alias` number, from 1, may overlap: one may be updated in place from
    the other, element for element. A scratch buffer lives for one position of the axes `rows`;
    the caller provides its memory, one for each thread.
    """

    dtype: str
    size: int
    role: str = READ
    alias: int = 0
    rows: tuple[int, ...] = ()


@frozen
class Instruction:
    """One scalar instruction; `args` are positions of earlier instructions."""

    op: str
    dtype: str
    args: tuple[int, ...] = ()
    attr: tuple[Any, ...] = ()
    index: Index | None = None

    def uses(self) -> tuple[int, ...]:
        """Every instruction this one reads, through its index too."""
        if self.index is None:
            return self.args
        return self.args + tuple(sorted(self.index.values()))


@frozen
class Store:
    """A write of a value to a buffer, where the condition holds.

    With an `update`, one of UPDATES, the element is read, joined to the value by that instruction
    and written back: `b[i] = update(b[i], value)`.

    Stores at computed indices may meet. They are then carried out in the order of the sequential
    axes, the first of them outermost; along parallel axes no two stores of a kernel meet. So a
    scatter has the axes of its indices as sequential ones, and its windows lie along parallel ones.
    """

    buffer: int
    index: Index
    value: int
    condition: int | None = None
    update: str = ""
    second: int | None = None  # the imaginary part, in a legal kernel

    def uses(self) -> tuple[int, ...]:
        more = (v for v in (self.second, self.condition) if v is not None)
        return (self.value, *more, *sorted(self.index.values()))


@frozen
class Check:
    """A condition that must hold everywhere; where it fails, bit `code` of the fault is set."""

    condition: int
    code: int


@frozen
class Fold:
    """The shape of a sum of floats, which fixes its bits: `kernel/analyse/reduction` has it as a
    tree. It follows from the extent, and from whether rounds lie along the axis.

    Where they do, a round is `lanes * copies` neighbours; elsewhere it is one element. Rounds are
    added one after the other in runs of `run`, then the copies of a run as a balanced tree. Runs
    are joined as a balanced tree up to a chunk of `chunk` runs, whose lanes are folded by halves;
    chunks are joined as a balanced tree. So whoever takes whole chunks has one number of each.
    """

    lanes: int = 16
    copies: int = 4
    run: int = 4
    chunk: int = 32

    @property
    def round(self) -> int:
        """Elements in a round that lies along the axis."""
        return self.lanes * self.copies

    @property
    def stretch(self) -> int:
        """Elements in a chunk."""
        return self.round * self.run * self.chunk


Free = frozenset[int]


@frozen
class Kernel:
    """A computation over axes; equal kernels have equal digests and are compiled once.

    A general kernel has a `Size` for each number that its caller gives; `sizes` says how many.
    """

    axes: tuple[Axis, ...]
    buffers: tuple[Buffer, ...]
    params: tuple[str, ...]
    instructions: tuple[Instruction, ...]
    stores: tuple[Store, ...]
    checks: tuple[Check, ...] = ()
    fold: Fold = Fold()
    free: tuple[Free, ...] = field(default=(), compare=False, repr=False)
    sizes: int = 0
    _digest: str = field(default="", init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.free) != len(self.instructions):
            self._depend({})
        along = self.along
        while along and any(self._lacks(i, n, along) for n, i in enumerate(self.instructions)):
            self._depend(along)
            along = self.along

    def _depend(self, along: Mapping[int, Free]) -> None:
        free: list[Free] = []
        for instruction in self.instructions:
            free.append(free_axes(instruction, free, self.axes, self.buffers))
            if instruction.op == "reduce":
                free[-1] = free[-1].union(*(along.get(a, ()) for a in instruction.attr[1:]))
        object.__setattr__(self, "free", tuple(free))

    def _lacks(self, instruction: Instruction, at: int, along: Mapping[int, Free]) -> bool:
        """Whether a reduction would run for fewer than what has to be done in its loop."""
        return instruction.op == "reduce" and any(
            not along.get(a, frozenset()) <= self.free[at] for a in instruction.attr[1:]
        )

    @property
    def digest(self) -> str:
        """The SHA-256 of the kernel's data, in hexadecimal: the key of its compiled code."""
        if not self._digest:
            made = sha256(msgpack.packb(to_data(self))).hexdigest()
            object.__setattr__(self, "_digest", made)
        return self._digest

    def __hash__(self) -> int:
        return hash(self.digest)  # kernels are long, and stand in many tables

    @property
    def along(self) -> dict[int, Free]:
        """The reduced axes in whose loops rows are kept or conditions are checked, with the other
        axes that these depend on. A reduction runs for each of them, though it may come to the
        same."""
        found: dict[int, Free] = {}
        wanted = [self.free[c.condition] for c in self.checks]
        for store in self.stores:
            buffer = self.buffers[store.buffer]
            if buffer.role == SCRATCH:
                wanted.append(store.index.axes().union(buffer.rows))
        for axes in wanted:
            reduced = [a for a in axes if self.axes[a].kind == REDUCED]
            for a in reduced:
                found[a] = found.get(a, frozenset()) | axes.difference(reduced)
        return found

    def store_free(self, store: Store) -> Free:
        """The axes that must be bound where a store stands."""
        free = store.index.axes().union(*(self.free[v] for v in store.uses()))
        if store.update:  # what is the same in each round is still joined in each
            free |= {n for n, a in enumerate(self.axes) if a.kind == SEQUENTIAL}
        return free

    def with_instructions(
        self,
        instructions: Sequence[Instruction],
        at: Mapping[int, int] | Sequence[int],
        free: Sequence[Free] = (),
    ) -> Kernel:
        """The kernel with other instructions; `at` says where each old one's value is now, and
        `free` what they depend on, where that is known."""
        return Kernel(
            self.axes,
            self.buffers,
            self.params,
            tuple(instructions),
            tuple(
                Store(
                    s.buffer,
                    moved(s.index, at),
                    at[s.value],
                    None if s.condition is None else at[s.condition],
                    s.update,
                    None if s.second is None else at[s.second],
                )
                for s in self.stores
            ),
            tuple(Check(at[c.condition], c.code) for c in self.checks),
            self.fold,
            tuple(free),
            self.sizes,
        )

    def live(self) -> Kernel:
        """The kernel without instructions that nothing reads. What is kept of a row is stored in
        the loop of a reduction, and conditions are checked there: that stays, whether or not its
        result is read."""
        wanted = {v for s in self.stores for v in s.uses()} | {c.condition for c in self.checks}
        along = self.along.keys()
        if along:
            wanted |= {
                n
                for n, i in enumerate(self.instructions)
                if i.op == "reduce" and not along.isdisjoint(i.attr[1:])
            }
        for n in range(len(self.instructions) - 1, -1, -1):
            if n in wanted:
                wanted.update(self.instructions[n].uses())
        if len(wanted) == len(self.instructions):
            return self
        order = sorted(wanted)
        at = {old: new for new, old in enumerate(order)}
        kept = [renumbered(self.instructions[n], at) for n in order]
        return self.with_instructions(kept, at, [self.free[n] for n in order])

    def __str__(self) -> str:
        from tenfold.kernel.ir.text import show

        return show(self)


def renumbered(instruction: Instruction, at: Mapping[int, int] | Sequence[int]) -> Instruction:
    """An instruction whose operands stand elsewhere."""
    if all(at[v] == v for v in instruction.uses()):
        return instruction
    index = None if instruction.index is None else moved(instruction.index, at)
    args = tuple(at[a] for a in instruction.args)
    return Instruction(instruction.op, instruction.dtype, args, instruction.attr, index)


def moved(index: Index, at: Mapping[int, int] | Sequence[int]) -> Index:
    """An index whose values stand elsewhere."""
    if not index.values():
        return index
    return index.rebuild(
        lambda a: Index(((Atom(VALUE, at[a.of], a.bound) if a.kind == VALUE else a, 1),))
    )


def free_axes(
    instruction: Instruction,
    free: Sequence[Free],
    axes: Sequence[Axis],
    buffers: Sequence[Buffer],
) -> Free:
    """The axes an instruction's result depends on, given those of the earlier ones."""
    index, args = instruction.index, instruction.args
    result: Free = free[args[0]] if args else frozenset()
    for v in args[1:] if index is None else instruction.uses():
        result |= free[v]
    if index is not None:
        result |= index.axes()
    if instruction.op == "load":
        buffer = buffers[instruction.attr[0]]
        result |= frozenset(buffer.rows)
        if buffer.role == BOTH:  # what an earlier step of a sequential axis wrote
            result |= {n for n, a in enumerate(axes) if a.kind == SEQUENTIAL}
    elif instruction.op == "reduce":
        result -= frozenset(instruction.attr[1:])
    return result


def stages(kernel: Kernel) -> tuple[int, ...]:
    """How many reductions deep each instruction stands; a loop over a reduced axis that
    computes a result of stage s runs before every loop that reads it."""
    stored: dict[int, list[int]] = {}
    for store in kernel.stores:
        kept = any(kernel.axes[a].kind == REDUCED for a in store.index.axes())
        if kept and kernel.buffers[store.buffer].role == SCRATCH:
            stored.setdefault(store.buffer, []).append(store.value)
    result: list[int] = []
    for instruction in kernel.instructions:
        stage = max((result[v] for v in instruction.uses()), default=0)
        if instruction.op == "reduce":
            stage += 1
        elif instruction.op == "load" and instruction.attr[0] in stored:
            stage = max(stage, *(result[v] + 1 for v in stored[instruction.attr[0]]))
        result.append(stage)
    return tuple(result)


def verify(kernel: Kernel) -> None:
    """Raise unless the kernel keeps the rules of kernels."""

    def wrong(what: str) -> GraphError:
        return GraphError(f"kernel: {what}\n{kernel}")

    for n, i in enumerate(kernel.instructions):
        if i.dtype not in DTYPES:
            raise wrong(f"%{n} has unknown dtype {i.dtype}")
        if any(not 0 <= v < n for v in i.uses()):
            raise wrong(f"%{n} reads a value that does not stand before it")
        count = ELEMENTWISE.get(i.op)
        if count is None and i.op not in OTHERS:
            raise wrong(f"%{n} has unknown op {i.op}")
        if count is not None and len(i.args) != count:
            raise wrong(f"%{n}: {i.op} takes {count} operands, not {len(i.args)}")
        if i.op == "reduce":
            if i.attr[0] not in REDUCTIONS:
                raise wrong(f"%{n}: no reduction {i.attr[0]}")
            if any(kernel.axes[a].kind != REDUCED for a in i.attr[1:]):
                raise wrong(f"%{n} reduces over an axis that is not reduced")
    for store in kernel.stores:
        if any(kernel.axes[a].kind == REDUCED for a in kernel.store_free(store)) and (
            kernel.buffers[store.buffer].role != SCRATCH
        ):
            raise wrong("a store depends on a reduced axis")
        if kernel.instructions[store.value].dtype != kernel.buffers[store.buffer].dtype:
            raise wrong(f"%{store.value} is stored to a buffer of another dtype")
        if store.update and store.update not in UPDATES:
            raise wrong(f"no update {store.update}")
        if store.update and kernel.buffers[store.buffer].role != BOTH:
            raise wrong(f"b{store.buffer} is updated and not both read and written")


def to_data(kernel: Kernel) -> list[Any]:
    """The kernel as lists, numbers, strings and bytes, to be written to a file. A size is a list
    of its number alone."""
    return [
        [[_put(a.extent), a.kind] for a in kernel.axes],
        [[b.dtype, _put(b.size), b.role, b.alias, list(b.rows)] for b in kernel.buffers],
        list(kernel.params),
        [
            [i.op, i.dtype, list(i.args), [_put(a) for a in i.attr], _pack(i.index)]
            for i in kernel.instructions
        ],
        [[s.buffer, _pack(s.index), s.value, s.condition, s.update] for s in kernel.stores],
        [[c.condition, c.code] for c in kernel.checks],
        [kernel.fold.lanes, kernel.fold.copies, kernel.fold.run, kernel.fold.chunk],
        kernel.sizes,
    ]


def from_data(data: Sequence[Any]) -> Kernel:
    """The kernel that `to_data` wrote down."""
    axes, buffers, params, instructions, stores, checks, fold, sizes = data
    return Kernel(
        tuple(Axis(_get(extent), kind) for extent, kind in axes),
        tuple(
            Buffer(d, _get(size), role, alias, tuple(rows))
            for d, size, role, alias, rows in buffers
        ),
        tuple(params),
        tuple(
            Instruction(op, dtype, tuple(args), tuple(_get(a) for a in attr), _unpack(index))
            for op, dtype, args, attr, index in instructions
        ),
        tuple(Store(b, _unpack(i) or Index(), v, c, u) for b, i, v, c, u in stores),
        tuple(Check(*c) for c in checks),
        Fold(*fold),
        sizes=sizes,
    )


def _put(number: Any) -> Any:
    return [number.number] if isinstance(number, Size) else number


def _get(data: Any) -> Any:
    return Size(*data) if isinstance(data, (list, tuple)) else data


def _pack(index: Index | None) -> list[Any] | None:
    if index is None:
        return None
    return [
        [
            [a.kind, a.of if a.kind in (AXIS, VALUE) else _pack(a.of), _put(a.bound), _put(k)]
            for a, k in index.terms
        ],
        _put(index.const),
    ]


def _unpack(data: Sequence[Any] | None) -> Index | None:
    if data is None:
        return None
    terms, const = data
    return Index(
        tuple(
            (Atom(kind, of if kind in (AXIS, VALUE) else _unpack(of), _get(bound)), _get(k))
            for kind, of, bound, k in terms
        ),
        _get(const),
    )
