"""Random programs: graphs of up to 50 ops one after the other, with arguments for them, each from a
seed. Every fourth is as deep as that; short ones cost less, and show as much an op.

Ops, dtypes, shapes and control flow are drawn from what the table takes; now and then values are
brought back to finite ones, so that a deep program does not end in NaN alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from values import Values, alike_but

from tenfold.errors import TenfoldError
from tenfold.graph import Graph
from tenfold.graph.op import Pointwise
from tenfold.ops import TABLE, samples
from tenfold.types import DTYPES, SHORT, TensorType

Array = np.ndarray[Any, Any]
SHAPES = (
    (), (1,), (3,), (7,), (16,), (33,), (0,), (2, 3), (5, 4), (4, 1), (1, 6), (3, 0), (17, 5),
    (2, 3, 4), (3, 1, 2), (4, 16), (2, 40),
)  # fmt: skip
LARGE = ((1000,), (64, 65), (3, 700), (129, 7), (5, 31, 16), (2, 3, 4, 5), (40, 40))
HUGE = ((130000,), (300, 700), (70000, 3), (5, 40000), (40, 50, 60))  # beyond the near caches
COMMON = ("add", "sub", "mul", "div", "max", "min", "exp", "tanh", "sqrt", "lt", "eq", "abs")
DEPTHS = 50, 6, 12, 24  # ops, one after the other, in turn
I32, BOOL = TensorType(DTYPES["i32"], ()), DTYPES["bool"]


def _taken(name: str, dtype: Any) -> bool:
    """Whether an elementwise op takes a dtype."""
    one = TensorType(dtype, ())
    try:
        TABLE[name].infer((one,) * (TABLE[name].arity or 1), {}, ())
    except TenfoldError:
        return False
    return True


# What is elementwise, by dtype: all such ops, and the common ones.
POINTWISE = {
    dtype: tuple(n for n, op in TABLE.items() if isinstance(op.lowering, Pointwise)
                 and _taken(n, dtype))
    for dtype in DTYPES.values()
}  # fmt: skip
USUAL = {dtype: tuple(n for n in names if n in COMMON) for dtype, names in POINTWISE.items()}
OTHERS = ("pow", "clip", "gcd", "erf_inv", "lgamma", "digamma")  # elementwise, lowered otherwise


class Drawn(Values):
    """One graph being drawn."""

    def step(self) -> None:
        """Add a few nodes, or try in vain."""
        (way,) = self.random.choices(_WAYS, _WEIGHTS)
        try:
            way(self)
        except TenfoldError:
            return

    # Elementwise.

    def pointwise(self) -> None:
        a = self.pick()
        dtype = self.type(a).dtype
        name = self.random.choice(
            USUAL[dtype] if self.random.random() < 0.6 else POINTWISE[dtype] + OTHERS
        )
        inputs = [a, *(self.alike(a) for _ in range((TABLE[name].arity or 1) - 1))]
        if name == "pow" and self.type(a).kind in "iu":  # a negative power raises
            inputs[1] = self.constant(dtype) if self.type(a).kind == "u" else self.small(dtype)
        else:
            self.random.shuffle(inputs)
        self.put(name, *inputs)

    def cast(self) -> None:
        self.put("cast", self.pick(), dtype=self.random.choice(self.dtypes))

    def bitcast(self) -> None:
        x = self.pick("iuf")
        size = self.type(x).dtype.itemsize
        fits = [s for s, d in DTYPES.items() if d.itemsize == size and s[0] in "iufb" and d != BOOL]
        self.put("bitcast", x, dtype=self.random.choice(fits))

    def select(self) -> None:
        a = self.pick()
        condition = self.pick("b") if self.random.random() < 0.5 else self.put("eq", a, a)
        self.put("select", condition, a, self.alike(a))

    def tame(self) -> None:
        """Finite and not too large again."""
        x = self.pick()
        dtype, kind = self.type(x).dtype, self.type(x).kind
        if kind in "iu":
            self.put("mod", x, self.raw(np.asarray(self.random.choice((3, 7, 50))).astype(dtype)))
        elif kind == "f":
            low, high = (self.raw(np.asarray(n).astype(dtype)) for n in (-4, 5))
            other = self.raw(np.asarray(self.random.uniform(-2, 2)).astype(dtype))
            self.put("select", self.put("isfinite", x), x, other)
            self.put("max", low, self.put("min", high, self.values[-1]))
        elif kind == "c":
            other = self.raw(np.asarray(self.random.uniform(-2, 2) + 1j).astype(dtype))
            near = self.put("lt", self.put("abs", x), self.put("abs", other))
            self.put("select", near, x, other)
        else:
            self.put("xor", x, self.alike(x))

    def words(self) -> None:
        if self.often(0.6):  # it takes long to compile
            return
        given = [self.put("cast", self.pick("iub"), dtype="u32") for _ in range(2)]
        self.node("threefry", [*given, *reversed(given)])

    # Reductions.

    def reduce(self) -> None:
        x = self.pick(rank=1)
        kind = self.random.choice(("sum", "max", "min", "prod", "any", "all", "sum", "sum"))
        if kind in ("any", "all"):
            x = self.put("ne", x, self.alike(x))
        self.put(f"reduce_{kind}", x, axes=self.axes(self.type(x).rank))

    def normalise(self) -> None:
        """x - max(x), exp, divided by the sum: what fuses into one kernel."""
        x = self.pick("f", rank=1)
        type = self.type(x)
        axis = self.random.randrange(type.rank)
        shape = tuple(1 if i == axis else n for i, n in enumerate(type.shape))
        top = self.put("reshape", self.put("reduce_max", x, axes=(axis,)), shape=shape)
        e = self.put("exp", self.put("sub", x, top))
        total = self.put("reshape", self.put("reduce_sum", e, axes=(axis,)), shape=shape)
        self.put("div", e, total)

    def extreme(self) -> None:
        x = self.pick(rank=1)
        axis = self.random.randrange(self.type(x).rank)
        self.put(self.random.choice(("argmax", "argmin")), x, axis=axis)

    def cumulative(self) -> None:
        x = self.pick(rank=1)
        name = self.random.choice(("cumsum", "cumprod", "cummax", "cummin"))
        axis = self.random.randrange(self.type(x).rank)
        self.put(name, x, axis=axis, reverse=self.random.random() < 0.3)

    def fold(self) -> None:
        x = self.pick(rank=1, most=40)
        one = TensorType(self.type(x).dtype, ())
        combine = self.scope([one, one], [one], self.random.randint(1, 3))
        axes = self.axes(self.type(x).rank)
        self.node("reduce", [x, self.constant(one.dtype)], {"axes": axes}, [combine])

    # Shapes.

    def reshape(self) -> None:
        x = self.pick()
        size = self.type(x).size
        options = [s for s in SHAPES if int(np.prod(s)) == size] + [(size,), (1, size), (size, 1)]
        options += [(n, size // n) for n in (2, 3, 4, 5) if size and size % n == 0]
        self.put("reshape", x, shape=self.random.choice(options))

    def transpose(self) -> None:
        x = self.pick(rank=2)
        axes = list(range(self.type(x).rank))
        self.random.shuffle(axes)
        self.put("transpose", x, axes=tuple(axes))

    def broadcast(self) -> None:
        x = self.pick()
        shape = [self.random.choice((2, 5)) if n == 1 else n for n in self.type(x).shape]
        if self.random.random() < 0.5:
            shape.insert(0, self.random.choice((1, 3, 4)))
        self.put("broadcast", x, shape=tuple(shape))

    def slice(self) -> None:
        x = self.pick(rank=1)
        starts, stops, steps = [], [], []
        for n in self.type(x).shape:
            a, b = sorted((self.random.randint(0, n), self.random.randint(0, n)))
            if self.random.random() < 0.6:
                a, b = 0, n
            starts.append(a)
            stops.append(b)
            steps.append(self.random.choice((1, 1, 1, 2, 3)))
        self.put("slice", x, starts=tuple(starts), stops=tuple(stops), steps=tuple(steps))

    def reverse(self) -> None:
        x = self.pick(rank=1)
        self.put("reverse", x, axes=self.axes(self.type(x).rank))

    def pad(self) -> None:
        x = self.pick(rank=1)
        rank = self.type(x).rank
        low, high = ([self.random.choice((0, 0, 1, 2, -1)) for _ in range(rank)] for _ in "ab")
        interior = [self.random.choice((0, 0, 0, 1)) for _ in range(rank)]
        self.put(
            "pad", x, self.constant(self.type(x).dtype), low=tuple(low), high=tuple(high),
            interior=tuple(interior),
        )  # fmt: skip

    def windows(self) -> None:
        x = self.pick(rank=1)
        shape = self.type(x).shape
        window, strides, dilation = (
            tuple(self.random.choice((1, 1, 2, 3)) for _ in shape) for _ in "abc"
        )
        self.put("windows", x, window=window, strides=strides, dilation=dilation)

    def concatenate(self) -> None:
        x = self.pick(rank=1)
        type = self.type(x)
        axis = self.random.randrange(type.rank)
        fits = self.near(lambda t: t.dtype == type.dtype and alike_but(t.shape, type.shape, axis))
        count = self.random.choice((1, 2, 2, 3, 10))
        parts = [x, *(self.random.choice(fits) for _ in range(count - 1))]
        self.random.shuffle(parts)
        self.put("concatenate", *parts, axis=axis)

    # Indexing.

    def gather(self) -> None:
        x = self.pick(rank=1)
        indices, given = self.places(x)
        self.node("gather", [x, *indices], given)

    def scatter(self) -> None:
        x = self.pick(rank=1)
        indices, given = self.places(x)
        kinds = ("set", "add", "mul", "min", "max")
        (frame,) = self.builder.node("gather", [x, *indices], given)
        type = self.type(frame)
        same = self.near(lambda t: t == type)
        updates = self.random.choice(same) if same and self.often(0.5) else frame
        if type.size and self.often(0.5):
            updates = self.put("broadcast", self.constant(type.dtype), shape=type.shape)
        self.node("scatter", [x, updates, *indices], {**given, "kind": self.random.choice(kinds)})

    def dynamic(self) -> None:
        x = self.pick(rank=1)
        type = self.type(x)
        sizes = tuple(self.random.randint(0, n) if self.often(0.7) else n for n in type.shape)
        starts = [self.index(()) for _ in sizes]
        if any(self.type(s).shape for s in starts):
            raise TenfoldError("no scalar")
        part = self.put("dynamic_slice", x, *starts, sizes=sizes)
        if self.often(0.5):
            self.put("dynamic_update", x, self.put("add", part, part), *starts)

    def overwrite(self) -> None:
        """Updates of an array one after the other, some over others, with reads in between."""
        x = self.pick(rank=1)
        type = self.type(x)
        n, rest = type.shape[0], type.shape[1:]
        low, high = 0, n
        for _ in range(self.random.randint(2, 4)):
            if self.often(0.6):
                low, high = sorted(self.random.randint(0, n) for _ in "ab")
            part = self.fitted(TensorType(type.dtype, (high - low, *rest)))
            starts = [self.raw(np.asarray(at)) for at in (low, *[0] * len(rest))]
            x = self.put("dynamic_update", x, part, *starts)
            if self.often(0.6):
                a, b = sorted(self.random.randint(low, high) for _ in "ab")
                a, b = (low, high) if self.often(0.5) else (a, b)
                starts, stops, steps = (a, *[0] * len(rest)), (b, *rest), (1,) * type.rank
                self.put("slice", x, starts=starts, stops=stops, steps=steps)

    def hook(self) -> None:
        if self.often(0.2):  # much is done otherwise where there are some
            given = {"name": "seen", "default": -1, "structure": "*"}
            self.builder.node("hook", [self.pick()], given)

    def iota(self) -> None:
        shape = self.random.choice([s for s in SHAPES if s])
        axis = self.random.randrange(len(shape))
        self.put("iota", dtype=self.random.choice(self.dtypes), shape=shape, axis=axis)

    # Products, sorting.

    def contract(self) -> None:
        a = self.pick(rank=1)
        type = self.type(a)
        axis = self.random.randrange(type.rank)
        fits = [
            (v, i)
            for v in self.near(lambda t: t.dtype == type.dtype)
            for i, n in enumerate(self.type(v).shape)
            if n == type.shape[axis]
        ]
        b, other = self.random.choice(fits)
        more = [
            (i, j)
            for i, m in enumerate(type.shape)
            for j, n in enumerate(self.type(b).shape)
            if i != axis and j != other and m == n
        ]
        pair = self.random.choice(more) if more and self.often(0.4) else None
        batch = ((pair[0],), (pair[1],)) if pair else ((), ())
        self.put(
            "contract", a, b, lhs_contract=(axis,), rhs_contract=(other,), lhs_batch=batch[0],
            rhs_batch=batch[1],
        )  # fmt: skip

    def convolve(self) -> None:
        x = self.pick("iufc", rank=2)
        type = self.type(x)
        space = type.rank - 2
        shape = (self.random.randint(1, 2), type.shape[1], *(min(2, n) for n in type.shape[2:]))
        w = self.constant(type.dtype, shape)
        ones = (1,) * space
        self.put(
            "conv", x, w, strides=(self.random.randint(1, 2),) * space, low=(0,) * space,
            high=ones, x_dilation=ones, dilation=ones, groups=1,
        )  # fmt: skip

    def sort(self) -> None:
        x = self.pick(rank=1)
        axis = self.random.randrange(self.type(x).rank)
        self.put(self.random.choice(("sort", "argsort")), x, axis=axis)

    def best(self) -> None:
        x = self.pick(rank=1)
        self.node("top_k", [x], {"k": self.random.randint(0, self.type(x).shape[-1])})

    def search(self) -> None:
        x = self.pick(rank=1, most=100)
        table = self.put("sort", self.put("reshape", x, shape=(self.type(x).size,)), axis=0)
        self.put("searchsorted", table, self.alike(x), side=self.random.choice(("left", "right")))

    # Control flow.

    def inner(self) -> Drawn:
        return Drawn(self.random, self.dtypes, self.level + 1, self.largest)

    def scope(
        self, types: Sequence[TensorType], results: Sequence[TensorType], steps: int
    ) -> Graph:
        """A scope over parameters of these types that gives these results."""
        inner = self.inner()
        inner.values = [inner.builder.parameter(t) for t in types]
        parameters = list(inner.values)
        for _ in range(steps):
            inner.step()
        outputs = [inner.fitted(type) for type in results]
        return inner.builder.finish(outputs, parameters)

    def fitted(self, type: TensorType) -> int:
        """Some value, made to have this type."""
        same = [v for v in self.values if self.type(v) == type]
        if same and self.often(0.8):
            return self.random.choice(same[-3:])
        for _ in range(8):
            try:
                value = self.pick()
                if self.type(value).dtype != type.dtype:
                    value = self.put("cast", value, dtype=SHORT[type.dtype])
                return self.put("broadcast", value, shape=type.shape)
            except TenfoldError:
                continue
        scalar = self.constant(type.dtype)
        return self.put("broadcast", scalar, shape=type.shape) if type.shape else scalar

    def control(self) -> None:
        if self.level > 1:
            return self.cast()
        (way,) = self.random.choices((self.switch, self.loop, self.scan), (2, 2, 2))
        return way()

    def arguments(self) -> list[int]:
        return [self.pick() for _ in range(self.random.randint(1, 3))]

    def switch(self) -> None:
        arguments = self.arguments()
        types = [self.type(v) for v in arguments]
        results = [self.type(self.pick()) for _ in range(self.random.randint(1, 2))]
        count = self.random.randint(1, 3)
        branches = [self.scope(types, results, self.random.randint(0, 3)) for _ in range(count)]
        index = self.index(())
        if self.type(index).shape:
            raise TenfoldError("no scalar")
        self.node("switch", [index, *arguments], {}, branches)

    def loop(self) -> None:
        """A while loop that counts its rounds, and may end before by what it computes."""
        arguments = self.arguments()
        captures = self.random.randint(0, len(arguments) - 1)
        types = [self.type(v) for v in arguments]
        whole = [*types, I32]
        test = self.inner()
        test.values = [test.builder.parameter(t) for t in whole]
        own = list(test.values)
        limit = test.raw(np.asarray(self.random.randint(0, 3), np.int32))
        more = test.put("lt", own[-1], limit)
        seen = own[-2]
        if self.often(0.5) and test.type(seen).kind in "iuf" and test.type(seen).size:
            axes = tuple(range(test.type(seen).rank))
            top = test.put("reduce_max", seen, axes=axes)
            more = test.put("and", more, test.put("lt", top, test.small(test.type(seen).dtype)))
        condition = test.builder.finish([more], own)
        inner = self.inner()
        inner.values = [inner.builder.parameter(t) for t in whole]
        own = list(inner.values)
        for _ in range(self.random.randint(0, 3)):
            inner.step()
        one = inner.raw(np.asarray(1, np.int32))
        outputs = [inner.fitted(t) for t in types[captures:]]
        outputs.append(inner.put("add", own[-1], one))
        body = inner.builder.finish(outputs, own)
        zero = self.raw(np.asarray(0, np.int32))
        self.node("while", [*arguments, zero], {"captures": captures}, [condition, body])

    def scan(self) -> None:
        first = self.pick(rank=1)
        length = self.type(first).shape[0]
        if length > 8:
            raise TenfoldError("too long")
        stacked = [first]
        if self.often(0.3):
            fits = self.near(lambda t: bool(t.rank) and t.shape[0] == length)
            stacked.append(self.random.choice(fits))
        before = self.arguments()
        captures = self.random.randint(0, len(before))
        carries = len(before) - captures
        types = [self.type(v) for v in before]
        sliced = [TensorType(self.type(v).dtype, self.type(v).shape[1:]) for v in stacked]
        results = [*types[captures:], *(sliced[:1] if self.often(0.7) else [])]
        body = self.scope([*types, *sliced], results, self.random.randint(0, 3))
        self.node(
            "scan",
            [*before, *stacked],
            {
                "captures": captures, "carries": carries, "length": length,
                "reverse": self.often(0.3), "unroll": 1,
            },
            [body],
        )  # fmt: skip


_CHANCES: tuple[tuple[int, Callable[[Drawn], None]], ...] = (
    (120, Drawn.pointwise), (20, Drawn.tame), (12, Drawn.cast), (3, Drawn.bitcast),
    (9, Drawn.select),
    (1, Drawn.words), (7, Drawn.reduce), (2, Drawn.normalise), (2, Drawn.extreme),
    (2, Drawn.cumulative), (1, Drawn.fold), (5, Drawn.reshape), (6, Drawn.transpose),
    (9, Drawn.broadcast), (4, Drawn.slice), (3, Drawn.reverse), (5, Drawn.pad), (1, Drawn.windows),
    (5, Drawn.concatenate), (5, Drawn.gather), (3, Drawn.scatter), (3, Drawn.dynamic),
    (2, Drawn.overwrite), (1, Drawn.hook), (2, Drawn.iota),
    (4, Drawn.contract), (1, Drawn.convolve), (2, Drawn.sort), (1, Drawn.best),
    (1, Drawn.search), (4, Drawn.control),
)  # fmt: skip
_WEIGHTS, _WAYS = zip(*_CHANCES, strict=True)


def draw_program(seed: int, depth: int | None = None) -> tuple[Graph, list[Array]]:
    """A random program and arguments for it, so deep or as deep as its seed says."""
    depth = depth or DEPTHS[seed % len(DEPTHS)]
    source = random.Random(seed)
    every = tuple(DTYPES)
    few = tuple(source.sample(every, source.choice((1, 2, 3, 4))))
    size = source.random()
    wide, largest = ((HUGE, 250000) if size < 0.01 else (LARGE, 20000) if size < 0.06
                     else (SHAPES, 700))  # fmt: skip
    dtypes = few if source.random() < 0.8 else every
    drawn = Drawn(source, dtypes, largest=largest)
    arrays = []
    numbers = np.random.default_rng(seed)
    for _ in range(source.randint(1, 4)):
        dtype = DTYPES[source.choice(drawn.dtypes)]
        shape = source.choice(wide if source.random() < 0.6 else SHAPES)
        way = samples.anything if source.random() < 0.5 else samples.ordinary
        arrays.append(np.asarray(way(numbers, dtype, shape)))
        drawn.values.append(drawn.builder.parameter(TensorType(dtype, shape)))
    for _ in range(4000):
        drawn.step()
        if drawn.depth and max(drawn.depth.values()) >= depth:
            break
    deepest = max(drawn.values, key=lambda v: drawn.depth.get(v, 0))
    outputs = [source.choice(drawn.values) for _ in range(source.randint(0, 2))]
    return drawn.builder.finish([*outputs, deepest]), arrays
