"""Random programs, and the comparison of their plans with the reference.

    python tests/fuzz.py 20000 [first seed]

runs that many and stops at the first disagreement, with the graph and the seed that shows it.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.errors import TenfoldError
from tenfold.graph import Builder, Graph
from tenfold.graph.op import Pointwise
from tenfold.ops import TABLE, samples
from tenfold.types import DTYPES, SHORT, TensorType

Array = np.ndarray[Any, Any]
SHAPES = (
    (), (1,), (3,), (7,), (16,), (33,), (0,), (2, 3), (5, 4), (4, 1), (1, 6), (3, 0), (17, 5),
    (2, 3, 4), (3, 1, 2), (4, 16), (2, 40),
)  # fmt: skip
POINTWISE = tuple(name for name, op in TABLE.items() if isinstance(op.lowering, Pointwise))
COMMON = ("add", "sub", "mul", "div", "max", "min", "exp", "tanh", "sqrt", "lt", "eq", "abs")
LARGEST = 700  # elements


class Drawn:
    """One graph being drawn."""

    def __init__(self, source: random.Random, dtypes: Sequence[str], depth: int = 0) -> None:
        self.random = source
        self.builder = Builder(TABLE)
        self.dtypes = dtypes
        self.depth = depth
        self.values: list[int] = []

    def type(self, value: int) -> TensorType:
        return self.builder.types[value]

    def put(self, name: str, *inputs: int, **attributes: Any) -> int:
        (value,) = self.builder.node(name, inputs, attributes)
        if self.type(value).size > LARGEST:
            raise TenfoldError("too large")
        self.values.append(value)
        return value

    def pick(self, *kinds: str, rank: int | None = None) -> int:
        """A value, late ones more often; of these kinds, if there are any."""
        count = len(self.values)
        found = [
            v
            for v in self.values
            if (not kinds or self.type(v).kind in kinds)
            and (rank is None or self.type(v).rank >= rank)
        ]
        if not found:
            raise TenfoldError("nothing to pick")
        if self.random.random() < 0.7:
            found = found[-max(3, count // 16) :]
        return self.random.choice(found)

    def constant(self, dtype: Any, shape: tuple[int, ...] = ()) -> int:
        drawn = np.random.default_rng(self.random.getrandbits(32))
        array = samples.anything(drawn, dtype, shape)
        if self.random.random() < 0.5:
            array = np.full(shape, self.random.choice((0, 1, 2, 3))).astype(dtype)
        kind = repr(TensorType(dtype, shape))
        (value,) = self.builder.node("constant", (), {"data": array.tobytes(), "type": kind})
        return value

    def alike(self, value: int) -> int:
        """Another value of the same dtype that broadcasts with this one."""
        type = self.type(value)
        found = [
            v
            for v in self.values
            if self.type(v).dtype == type.dtype and _broadcasts(self.type(v).shape, type.shape)
        ]
        if not found or self.random.random() < 0.25:
            return self.constant(type.dtype)
        return self.random.choice(found)

    def step(self) -> None:
        """Add one node, or try in vain."""
        ways: list[tuple[int, Callable[[], Any]]] = [
            (10, self.pointwise), (3, self.cast), (2, self.select), (3, self.reduce),
            (1, self.extreme), (2, self.reshape), (2, self.transpose), (2, self.broadcast),
            (2, self.slice), (1, self.reverse), (2, self.pad), (2, self.concatenate),
            (2, self.gather), (2, self.scatter), (1, self.dynamic), (1, self.iota),
            (1, self.contract),
            (1, self.normalise), (1, self.sort), (1, self.control if self.depth < 2 else self.cast),
        ]  # fmt: skip
        (way,) = self.random.choices([w for _, w in ways], [n for n, _ in ways])
        try:
            way()
        except TenfoldError:
            return

    def pointwise(self) -> None:
        name = self.random.choice(COMMON if self.random.random() < 0.6 else POINTWISE)
        a = self.pick()
        inputs = [a, *(self.alike(a) for _ in range((TABLE[name].arity or 1) - 1))]
        self.random.shuffle(inputs)
        self.put(name, *inputs)

    def cast(self) -> None:
        self.put("cast", self.pick(), dtype=self.random.choice(self.dtypes))

    def select(self) -> None:
        a = self.pick()
        condition = self.pick("b") if self.random.random() < 0.5 else self.put("eq", a, a)
        self.put("select", condition, a, self.alike(a))

    def axes(self, rank: int) -> tuple[int, ...]:
        return tuple(a for a in range(rank) if self.random.random() < 0.5) or (rank - 1,)

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

    def reshape(self) -> None:
        x = self.pick()
        size = self.type(x).size
        options = [s for s in SHAPES if int(np.prod(s)) == size] + [(size,), (1, size), (size, 1)]
        options += [(n, size // n) for n in (2, 3, 4, 5) if size and size % n == 0]
        self.put("reshape", x, shape=self.random.choice(options))

    def transpose(self) -> None:
        x = self.pick(rank=1)
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
            if self.random.random() < 0.5:
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

    def concatenate(self) -> None:
        x = self.pick(rank=1)
        type = self.type(x)
        axis = self.random.randrange(type.rank)
        fits = [
            v
            for v in self.values
            if self.type(v).dtype == type.dtype
            and self.type(v).rank == type.rank
            and all(
                a == axis or m == n
                for a, (m, n) in enumerate(zip(self.type(v).shape, type.shape, strict=True))
            )
        ]
        count = self.random.choice((1, 2, 2, 3, 10))
        self.put("concatenate", *(self.random.choice(fits) for _ in range(count)), axis=axis)

    def index(self, shape: tuple[int, ...]) -> int:
        drawn = np.random.default_rng(self.random.getrandbits(32))
        found = [v for v in self.values if self.type(v).kind in "iu" and self.type(v).size < 50]
        if found and self.random.random() < 0.5:
            return self.random.choice(found)
        array = drawn.integers(-9, 9, shape).astype(self.random.choice(("i4", "i8")))
        kind = repr(TensorType(DTYPES[SHORT[np.dtype(array.dtype)]], shape))
        (value,) = self.builder.node("constant", (), {"data": array.tobytes(), "type": kind})
        return value

    def gather(self) -> None:
        x = self.pick(rank=1)
        axis = self.random.randrange(self.type(x).rank)
        at = self.random.randint(0, self.type(x).rank - 1)
        index = self.index(self.random.choice(((), (3,), (2, 2))))
        mode = self.random.choice(("clip", "wrap"))
        self.put("gather", x, index, axes=(axis,), at=at, mode=mode)

    def dynamic(self) -> None:
        x = self.pick(rank=1)
        type = self.type(x)
        sizes = tuple(self.random.randint(0, n) for n in type.shape)
        starts = [self.index(()) for _ in sizes]
        if any(self.type(s).shape for s in starts):
            raise TenfoldError("no scalar")
        part = self.put("dynamic_slice", x, *starts, sizes=sizes)
        if self.random.random() < 0.5:
            self.put("dynamic_update", x, self.put("add", part, part), *starts)

    def iota(self) -> None:
        shape = self.random.choice([s for s in SHAPES if s])
        axis = self.random.randrange(len(shape))
        self.put("iota", dtype=self.random.choice(self.dtypes), shape=shape, axis=axis)

    def contract(self) -> None:
        a = self.pick(rank=1)
        type = self.type(a)
        axis = self.random.randrange(type.rank)
        fits = [
            (v, i)
            for v in self.values
            for i, n in enumerate(self.type(v).shape)
            if self.type(v).dtype == type.dtype and n == type.shape[axis]
        ]
        b, other = self.random.choice(fits)
        self.put(
            "contract", a, b, lhs_contract=(axis,), rhs_contract=(other,), lhs_batch=(),
            rhs_batch=(),
        )  # fmt: skip

    def scatter(self) -> None:
        x = self.pick(rank=1)
        shape = self.type(x).shape
        axis = self.random.randrange(len(shape))
        index = self.index(self.random.choice(((), (3,), (2, 2), (20,))))
        rest = tuple(n for a, n in enumerate(shape) if a != axis)
        at = self.random.randint(0, len(rest))
        frame = (*rest[:at], *self.type(index).shape, *rest[at:])
        updates = self.fitted(TensorType(self.type(x).dtype, frame))
        kind = self.random.choice(("set", "add", "min", "max"))
        mode = self.random.choice(("clip", "wrap"))
        self.put("scatter", x, updates, index, axes=(axis,), at=at, mode=mode, kind=kind)

    def sort(self) -> None:
        x = self.pick("i", "u", "f", rank=1)
        name = self.random.choice(("sort", "argsort"))
        self.put(name, x, axis=self.random.randrange(self.type(x).rank))

    # Control flow.

    def scope(
        self, types: Sequence[TensorType], results: Sequence[TensorType], steps: int
    ) -> Graph:
        """A scope over parameters of these types that gives these results."""
        inner = Drawn(self.random, self.dtypes, self.depth + 1)
        inner.values = [inner.builder.parameter(t) for t in types]
        parameters = list(inner.values)
        for _ in range(steps):
            inner.step()
        outputs = [inner.fitted(type) for type in results]
        return inner.builder.finish(outputs, parameters)

    def fitted(self, type: TensorType) -> int:
        """Some value, made to have this type."""
        same = [v for v in self.values if self.type(v) == type]
        if same and self.random.random() < 0.8:
            return self.random.choice(same)
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
        (way,) = self.random.choices((self.switch, self.loop, self.scan), (2, 1, 2))
        way()

    def arguments(self) -> list[int]:
        return [self.pick() for _ in range(self.random.randint(1, 3))]

    def switch(self) -> None:
        arguments = self.arguments()
        types = [self.type(v) for v in arguments]
        results = [self.type(self.pick()) for _ in range(self.random.randint(1, 2))]
        count = self.random.randint(1, 3)
        branches = [self.scope(types, results, self.random.randint(0, 6)) for _ in range(count)]
        index = self.index(())
        if self.type(index).shape:
            raise TenfoldError("no scalar")
        self.values += self.builder.node("switch", [index, *arguments], {}, branches)

    def loop(self) -> None:
        """A while loop that counts its rounds."""
        arguments = self.arguments()
        captures = self.random.randint(0, len(arguments) - 1)
        types = [self.type(v) for v in arguments]
        counter = TensorType(DTYPES["i32"], ())
        whole = [*types[:captures], *types[captures:], counter]
        b = Builder(TABLE)
        parameters = [b.parameter(t) for t in whole]
        limit = np.int32(self.random.randint(0, 4)).tobytes()
        (bound,) = b.node("constant", (), {"data": limit, "type": "i32"})
        condition = b.finish(b.node("lt", [parameters[-1], bound]), parameters)
        inner = Drawn(self.random, self.dtypes, self.depth + 1)
        inner.values = [inner.builder.parameter(t) for t in whole]
        own = list(inner.values)
        for _ in range(self.random.randint(0, 6)):
            inner.step()
        (one,) = inner.builder.node("constant", (), {"data": np.int32(1).tobytes(), "type": "i32"})
        more = inner.builder.node("add", [own[-1], one])
        outputs = [*(inner.fitted(t) for t in types[captures:]), *more]
        body = inner.builder.finish(outputs, own)
        zero = self.builder.node("constant", (), {"data": bytes(4), "type": "i32"})
        self.values += self.builder.node(
            "while", [*arguments, *zero], {"captures": captures}, [condition, body]
        )

    def scan(self) -> None:
        stacked = [self.pick(rank=1)]
        length = self.type(stacked[0]).shape[0]
        if length > 8:
            raise TenfoldError("too long")
        before = self.arguments()
        captures = self.random.randint(0, len(before))
        carries = len(before) - captures
        types = [self.type(v) for v in before]
        sliced = [TensorType(self.type(v).dtype, self.type(v).shape[1:]) for v in stacked]
        results = [*types[captures:], *(sliced[:1] if self.random.random() < 0.7 else [])]
        body = self.scope([*types, *sliced], results, self.random.randint(0, 6))
        made = self.builder.node(
            "scan",
            [*before, *stacked],
            {
                "captures": captures, "carries": carries, "length": length,
                "reverse": self.random.random() < 0.3, "unroll": 1,
            },
            [body],
        )  # fmt: skip
        self.values += made


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m in (1, n) or n == 1 for m, n in zip(reversed(a), reversed(b), strict=False))


def draw_program(seed: int, steps: int = 150) -> tuple[Graph, list[Array]]:
    """A random program and arguments for it."""
    source = random.Random(seed)
    every = tuple(DTYPES)
    few = tuple(source.sample(every, source.choice((1, 2, 3, 4))))
    drawn = Drawn(source, few if source.random() < 0.8 else every)
    arrays = []
    numbers = np.random.default_rng(seed)
    for _ in range(source.randint(1, 4)):
        dtype, shape = DTYPES[source.choice(drawn.dtypes)], source.choice(SHAPES)
        way = samples.anything if source.random() < 0.5 else samples.ordinary
        arrays.append(np.asarray(way(numbers, dtype, shape)))
        drawn.values.append(drawn.builder.parameter(TensorType(dtype, shape)))
    for _ in range(steps):
        drawn.step()
    count = source.randint(1, 5)
    outputs = [source.choice(drawn.values) for _ in range(count)] + drawn.values[-2:]
    return drawn.builder.finish(outputs), arrays


def compare(graph: Graph, arrays: Sequence[Array], *, apart: bool = False) -> str | None:
    """What is wrong with the plan of a graph on these arguments, or None."""
    from tenfold.execute import Program, plan_for
    from tenfold.parity.agree import Uncertain, disagreement, judged

    try:
        wanted = judged(graph, arrays)
    except Uncertain:
        return None
    got = Program(plan_for(graph))(arrays)
    for number, (mine, theirs) in enumerate(zip(got, wanted, strict=True)):
        wrong = disagreement(mine, theirs)
        if wrong is not None:
            return f"output {number}: {wrong}"
    return None


def main(count: int, first: int = 0) -> int:
    for seed in range(first, first + count):
        graph, arrays = draw_program(seed)
        try:
            wrong = compare(graph, arrays)
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        if wrong is not None:
            print(graph, arrays, f"seed {seed}: {wrong}", sep="\n")
            return 1
        if seed % 1000 == 999:
            print(f"{seed + 1 - first} programs agree", flush=True)
    print(f"{count} programs, no disagreement")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20000, *map(int, sys.argv[2:3])))
