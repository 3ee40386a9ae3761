"""Reroll: rounds of a loop that was unrolled become a loop again.

A Python loop that is traced leaves a copy of its body for each round. Copies that are alike but for
what is carried from round to round, literals, and where parts are cut out, become one scan. It
computes the same with the same ops in the same order. This pays where rounds are several kernels
anyhow; rounds that would all fuse into one kernel stay as they are until that gets too long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tenfold.frozen import frozen
from tenfold.graph import Builder, Graph, Node
from tenfold.graph.op import Table
from tenfold.ops.batching.rules import spread
from tenfold.plan.passes.reroll.body import Body, Made, Part
from tenfold.plan.passes.reroll.grow import Rounds, grow
from tenfold.plan.passes.reroll.seeds import LEAST_ROUNDS, Seed, seeds
from tenfold.plan.passes.reroll.structure import Structure
from tenfold.types import I64, SHORT, TensorType

PASSES = 4  # loops in loops, and loops that read each other's rounds
ATTEMPTS = 8  # to put loops into an order
LONG = 512  # nodes that are one kernel at most
LONGER = 8192  # the same where rounds cut parts out, elsewhere in each: a loop has to look where
LARGE = 1 << 20  # bytes of a value that rounds had better read together
SHARE = 64  # nodes of a round at least, where rounds were one kernel


@frozen
class FoundLoop:
    """A loop that was found: the user's lines, and its rounds."""

    file: str
    first: int
    last: int
    rounds: int

    def __str__(self) -> str:
        lines = f"line {self.last}"
        if self.first < self.last:
            lines = f"lines {self.first} to {self.last}"
        where = f"{self.file}, {lines}: " if self.file else ""
        return f"{where}{self.rounds} rounds found"


def reroll(graph: Graph, table: Table) -> tuple[Graph, tuple[FoundLoop, ...]]:
    """The graph with loops where it repeats itself, and what was found."""
    notes: list[FoundLoop] = []
    for _ in range(PASSES):
        if len(graph.nodes) < LEAST_ROUNDS:
            break
        structure = Structure(graph, table)
        found = _loops(structure)
        made = _rewritten(structure, found)
        if made is None:
            break
        graph, kept = made
        notes += [_note(structure, one) for one in kept]
    return graph, tuple(notes)


def repeats(graph: Graph, table: Table) -> bool:
    """Whether a graph has anything that may be rounds of a loop. No extent decides that, but which
    are equal."""
    if len(graph.nodes) < LEAST_ROUNDS:
        return False
    structure = Structure(graph, table)
    return any(True for _ in seeds(structure, [-1] * len(graph.nodes)))


def _loops(structure: Structure) -> list[Rounds]:
    """Loops that have no node in common, and are worth it."""
    claimed = [-1] * len(structure.nodes)
    found: list[Rounds] = []
    tried: set[tuple[int, int, int]] = set()
    for seed in seeds(structure, claimed):
        if structure.looks < 0:
            break
        name = seed[0], seed[-1], len(seed)
        if name in tried or any(claimed[p] >= 0 for p in seed):
            continue
        tried.add(name)
        rounds = _worth(structure, seed, claimed)
        if rounds is None:
            continue
        for column in rounds.columns:
            for position in column[rounds.low : rounds.high]:
                claimed[position] = len(found)
        found.append(rounds)
    return found


def _worth(structure: Structure, seed: Seed, claimed: Sequence[int]) -> Rounds | None:
    """The loop of a seed, if it pays; several rounds may be one of it."""
    rounds = grow(structure, seed, claimed)
    if rounds is None:
        return None
    width, together = len(rounds.columns), 1
    nodes = [structure.nodes[column[rounds.low]] for column in rounds.columns]
    if rounds.rereads(LARGE):
        return None
    fused = all(map(structure.is_fused, nodes))
    if fused:
        rounds.lanes = not rounds.distance
        regular = Body(rounds, (), (), ()).regular
        long = width * len(rounds) > (LONG if regular else LONGER)
        if rounds.lanes:
            return rounds if regular or long else None
        if not long:
            return None
        together = -(-SHARE // width)  # they are one kernel, and too long for one
    # What is carried over several rounds would be moved in each: after so many it is in its place.
    distance = max(rounds.distance, 1)
    together = -(-together // distance) * distance
    if together == 1:
        return rounds
    more = grow(structure, seed[::-1][::together][::-1], claimed)
    return rounds if more is None and not fused else more


def _rewritten(structure: Structure, found: list[Rounds]) -> tuple[Graph, list[Rounds]] | None:
    """The graph with these loops; those that would have to run before themselves are left out."""
    for _ in range(ATTEMPTS):
        if not found:
            break
        made = _Rewriting(structure, found)
        if made.stuck is None:
            return made.graph, found
        found = [rounds for rounds in found if rounds is not made.stuck]
    return None


class _Rewriting:
    """A graph made anew, with a node for each loop. `stuck` is a loop that hangs on itself."""

    def __init__(self, structure: Structure, found: list[Rounds]) -> None:
        self.structure, self.found = structure, found
        self.builder = Builder(structure.table)
        self.owner: dict[int, int] = {}  # by position: the number of a loop
        for number, rounds in enumerate(found):
            for column in rounds.columns:
                self.owner.update(dict.fromkeys(column[rounds.low : rounds.high], number))
        self.values = {  # by old value
            v: self.builder.parameter(p.type, p.name)
            for v, p in enumerate(structure.graph.parameters)
        }
        self.outside = set(structure.graph.outputs)
        for position, node in enumerate(structure.nodes):
            if position not in self.owner:
                self.outside.update(node.inputs)
        for rounds in found:
            self.outside.update(rounds.given())
        outer = set(_outer(found))
        self.bodies = [self._body(rounds, outer) for rounds in found]
        self.stacked: list[dict[Made, int]] = [{} for _ in found]
        self.stuck: Rounds | None = None
        self._run()
        if self.stuck is None:
            self.graph = self.builder.finish([self._value(v) for v in structure.graph.outputs])

    def _body(self, rounds: Rounds, outer: set[int]) -> Body:
        kept: list[Made] = []
        last: list[Made] = []
        starts = self.structure.graph.starts
        for number, column in enumerate(rounds.columns):
            for output in range(len(self.structure.nodes[column[rounds.low]].types)):
                made = number, output
                values = [starts[p] + output for p in column[rounds.low : rounds.high]]
                read = self.outside.intersection(values)
                if read == {values[-1]} and not rounds.lanes:
                    last.append(made)
                elif read:
                    kept.append(made)
        return Body(rounds, kept, last, outer)

    # What is made after what.

    def _run(self) -> None:
        """Make nodes and loops, each after those that it reads."""
        structure, count = self.structure, len(self.structure.nodes)
        graph = structure.graph
        state = bytearray(count + len(self.found))
        roots = [*graph.effects, *(structure.makers[v] for v in graph.outputs)]
        for root in roots:
            stack = [self._unit(root)] if root >= 0 else []
            while stack:
                unit = stack[-1]
                if state[unit] == 2:
                    stack.pop()
                    continue
                if state[unit] == 1:
                    stack.pop()
                    state[unit] = 2
                    self._make(unit)
                    continue
                state[unit] = 1
                for value in reversed(self._inputs(unit)):
                    maker = structure.makers[value]
                    if maker < 0:
                        continue
                    needed = self._unit(maker)
                    if state[needed] == 1:
                        self._blame(stack, state, needed)
                        return
                    if not state[needed]:
                        stack.append(needed)

    def _unit(self, position: int) -> int:
        loop = self.owner.get(position)
        return position if loop is None else len(self.structure.nodes) + loop

    def _inputs(self, unit: int) -> Sequence[int]:
        if unit < len(self.structure.nodes):
            return self.structure.nodes[unit].inputs
        body = self.bodies[unit - len(self.structure.nodes)]
        begun = [v for _, values in body.carries for v in values]
        captures = [v for v in body.captures if isinstance(v, int)]
        return [*captures, *begun, *(s.value for s in body.stacks if isinstance(s, Part))]

    def _blame(self, stack: Sequence[int], state: bytearray, needed: int) -> None:
        """The loop that is open and hangs on itself: the last one, or the one that is needed."""
        count = len(self.structure.nodes)
        if needed >= count:
            self.stuck = self.found[needed - count]
            return
        self.stuck = next(
            self.found[u - count] for u in reversed(stack) if u >= count and state[u] == 1
        )

    # Making.

    def _make(self, unit: int) -> None:
        structure = self.structure
        if unit >= len(structure.nodes):
            self._loop(unit - len(structure.nodes))
            return
        node, start = structure.nodes[unit], structure.graph.starts[unit]
        self.builder.at = node.source
        if structure.table[node.op].joins:
            inputs = self._joined(node)
            if len(inputs) == 1:
                self.values[start] = inputs[0]
                return
        else:
            inputs = [self._value(v) for v in node.inputs]
        made = self.builder.node(node.op, inputs, dict(node.attributes), node.scopes)
        for output, value in enumerate(made):
            self.values[start + output] = value

    def _loop(self, number: int) -> None:
        rounds, body = self.found[number], self.bodies[number]
        starts, builder = self.structure.graph.starts, self.builder
        builder.at = self.structure.nodes[rounds.columns[0][rounds.low]].source
        inputs = [self._capture(v) for v in body.captures]
        for _, values in body.carries:
            inputs += [self._value(v) for v in values]
        inputs += [self._zeros(body.type(made)) for made in body.zeros]
        carries = len(inputs) - len(body.captures)
        for stack in body.stacks:
            if isinstance(stack, Part):
                inputs.append(stack.cut(builder, self._value(stack.value)))
            else:
                data, type = stack
                whole = TensorType(type.dtype, (len(rounds), *type.shape))
                inputs += builder.node("constant", (), {"data": data, "type": whole})
        attributes = {
            "captures": len(body.captures),
            "carries": carries,
            "length": len(rounds),
            "reverse": False,
            "unroll": 1,
        }
        if rounds.lanes:
            made = self._side_by_side(body, inputs)
        else:
            made = builder.node("scan", inputs, attributes, [body.graph])
        at = 0
        for carried, values in body.carries:
            column, output = carried
            for back in range(len(values)):
                position = rounds.columns[column][rounds.high - 1 - back]
                self.values.setdefault(starts[position] + output, made[at])
                at += 1
        for column, output in body.zeros:
            self.values[starts[rounds.columns[column][rounds.high - 1]] + output] = made[at]
            at += 1
        for kept in body.kept:
            self.stacked[number][kept] = made[at]
            at += 1

    def _capture(self, value: int | bytes) -> int:
        """What a loop captures: a value, or a position that is known."""
        if isinstance(value, int):
            return self._value(value)
        return self.builder.node("constant", (), {"data": value, "type": SHORT[I64]})[0]

    def _side_by_side(self, body: Body, inputs: Sequence[int]) -> tuple[int, ...]:
        """All rounds at once, each a lane."""
        from tenfold.transform.batch import batch  # few programs need it

        flags = [False] * len(body.captures) + [True] * len(body.stacks)
        lanes, differ = batch(body.graph, flags, len(body.rounds))
        made = self.builder.inline(lanes, inputs)
        return tuple(
            value if differs else spread(self.builder, value, len(body.rounds))
            for value, differs in zip(made, differ, strict=True)
        )

    def _zeros(self, type: TensorType) -> int:
        one = {"data": bytes(type.dtype.itemsize), "type": SHORT[type.dtype]}
        return self.builder.node(
            "broadcast", self.builder.node("constant", (), one), {"shape": type.shape}
        )[0]

    # What loops made.

    def _row(self, value: int) -> tuple[int, Made, int] | None:
        """The loop that made a value, what it is there and the round; None if it is no row."""
        if value in self.values:
            return None
        position, output = self.structure.made(value)
        number = self.owner[position]
        column, i = self.found[number].at[position]
        return number, (column, output), i - self.found[number].low

    def _value(self, value: int) -> int:
        """The new value of an old one; a round's is cut out of what the loop stacked."""
        row = self._row(value)
        if row is not None:
            number, made, i = row
            whole = self._rows(number, made, i, i + 1)
            shape = self.structure.graph.types[value].shape
            (self.values[value],) = self.builder.node("reshape", [whole], {"shape": shape})
        return self.values[value]

    def _rows(self, number: int, made: Made, start: int, stop: int) -> int:
        """Some rounds of what a loop stacked."""
        whole = self.stacked[number][made]
        shape = self.builder.types[whole].shape
        if (start, stop) == (0, shape[0]):
            return whole
        rest = (0,) * (len(shape) - 1)
        given = {
            "starts": (start, *rest),
            "stops": (stop, *shape[1:]),
            "steps": (1,) * len(shape),
        }
        return self.builder.node("slice", [whole], given)[0]

    def _joined(self, node: Node) -> list[int]:
        """The inputs of a node that joins; rounds that follow each other are one."""
        inputs: list[int] = []
        run: list[int] = []
        rows = [self._row(v) for v in node.inputs]
        for i, row in enumerate(rows):
            run.append(i)
            after = rows[i + 1] if i + 1 < len(rows) else None
            if row and after and row[:2] == after[:2] and row[2] + 1 == after[2]:
                continue
            inputs.append(self._run_of(node, run, rows[run[0]]))
            run = []
        return inputs

    def _run_of(self, node: Node, run: list[int], row: tuple[int, Made, int] | None) -> int:
        """Consecutive inputs of a node that joins, as one value."""
        if row is None or len(run) == 1:
            return self._value(node.inputs[run[0]])
        number, made, start = row
        whole = self._rows(number, made, start, start + len(run))
        axis, shape = node["axis"], self.builder.types[whole].shape[1:]
        if axis:
            order = (*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1))
            (whole,) = self.builder.node("transpose", [whole], {"axes": order})
        joined = (*shape[:axis], len(run) * shape[axis], *shape[axis + 1 :])
        return self.builder.node("reshape", [whole], {"shape": joined})[0]


def _outer(found: Sequence[Rounds]) -> Iterator[int]:
    """In what loops of one kind differ, by id: such loops may be the rounds of another."""
    kinds: dict[tuple[int, ...], list[Rounds]] = {}
    for rounds in found:
        kinds.setdefault(rounds.kind, []).append(rounds)
    for alike in kinds.values():
        if len(alike) >= LEAST_ROUNDS:
            for same in zip(*(rounds.varying() for rounds in alike), strict=False):
                if len({tuple(data) for _, data in same}) > 1:
                    yield from (id(one) for one, _ in same)


def _note(structure: Structure, rounds: Rounds) -> FoundLoop:
    """What is said of a loop: the lines of its nodes in the file that has most of them."""
    sources = [structure.nodes[column[rounds.low]].source for column in rounds.columns]
    known = [source for source in sources if source is not None]
    if not known:
        return FoundLoop("", 0, 0, len(rounds))
    files = [source.file for source in known]
    file = max(files, key=files.count)
    lines = [source.line for source in known if source.file == file]
    return FoundLoop(file, min(lines), max(lines), len(rounds))
