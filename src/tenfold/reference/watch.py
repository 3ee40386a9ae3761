"""Values watched: every node's value as the reference evaluator computes it, or chosen ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO, overload

import numpy as np

from tenfold.errors import ValueProblem
from tenfold.frozen import frozen
from tenfold.graph import Graph, Source
from tenfold.graph.op import Branch, Inline, Loop
from tenfold.ops import TABLE
from tenfold.reference.callbacks import Callbacks
from tenfold.reference.evaluate import ActiveScope, Value, evaluate
from tenfold.types import TensorType

LIMIT = 32  # elements of a value that are printed


@frozen(eq=False)
class ValueRecord:
    """What one node gave, once: in a loop there is one record for each round.

    `name` is the number of its value after the way to it: `%5[2].%3` is %3 in round 2 of the
    loop %5. `position` is its place in its graph.
    """

    name: str
    position: int
    op: str
    types: tuple[TensorType, ...]
    source: Source | None
    title: str  # the name of a custom op, else empty
    values: tuple[Value, ...]  # none where they went into a file
    file: Path | None

    @property
    def value(self) -> Any:
        """The value; a tuple where the node has several."""
        values = self.values or self._read()
        return values[0] if len(values) == 1 else values

    def _read(self) -> tuple[Value, ...]:
        assert self.file is not None
        found = np.load(self.file)
        parts = [found] if isinstance(found, np.ndarray) else list(found.values())
        # A .npy file knows no bfloat16: it holds raw bytes of that size.
        return tuple(p.view(t.dtype) for p, t in zip(parts, self.types, strict=True))

    def text(self, limit: int = LIMIT) -> str:
        """The record as lines of text, with at most so many elements of each value."""
        head = f"{self.name} = {self.op} : {', '.join(map(repr, self.types))}"
        if self.source is not None:
            head += f"  # {self.source}"
        value = self.value
        values = value if isinstance(value, tuple) else (value,)
        return "\n".join([head, *(_show(v, limit) for v in values)])

    def answers(self, name: str) -> bool:
        """Whether this is meant by a name: its own, that of a loop round or branch it stands in,
        of a custom op, of the user's function, or a line such as 'model.py:12'."""
        if name in (self.name, self.title) or self.name.startswith(f"{name}."):
            return True
        if self.source is None:
            return False
        line = f"/{self.source.file}:{self.source.line}".replace("\\", "/")
        return name == self.source.function or line.endswith(f"/{name}")


@frozen(eq=False)
class Values(Sequence[ValueRecord]):
    """The records of one run, in the order the nodes ran; it prints as their text."""

    records: tuple[ValueRecord, ...]
    outputs: tuple[Value, ...]
    limit: int = LIMIT

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[ValueRecord]:
        return iter(self.records)

    @overload
    def __getitem__(self, at: int | str) -> ValueRecord: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[ValueRecord]: ...

    def __getitem__(self, at: int | str | slice) -> ValueRecord | Sequence[ValueRecord]:
        """A record by its place in the list or by its name: `values['%5[2].%3']`."""
        if not isinstance(at, str):
            return self.records[at]
        for record in self.records:
            if record.name == at:
                return record
        raise KeyError(at)

    def __str__(self) -> str:
        return "\n".join(record.text(self.limit) for record in self.records)

    __repr__ = __str__


def watch_values(
    graph: Graph,
    inputs: Sequence[Any],
    *,
    names: str | Collection[str] | None = None,
    ops: str | Collection[str] | None = None,
    positions: int | Collection[int] | None = None,
    limit: int = LIMIT,
    directory: str | Path | None = None,
    file: TextIO | None = None,
    callbacks: Callbacks | None = None,
) -> Values:
    """Run a graph on the reference evaluator and keep the values of the nodes chosen."""
    if limit < 0:
        raise ValueProblem(f"trace_values: the limit is {limit}", fix="give 0 or more elements")
    wanted = _Choice(_several(names), _several(ops), _several(positions))
    target = None if directory is None else Path(directory)
    if target is not None:
        target.mkdir(parents=True, exist_ok=True)
    records: list[ValueRecord] = []

    def watch(
        path: tuple[ActiveScope, ...], graph: Graph, position: int, values: Sequence[Value]
    ) -> None:
        if not values:
            return
        node = graph.nodes[position]
        name = "".join(f"{_enter(entry)}." for entry in path) + f"%{graph.starts[position]}"
        title = node["name"] if isinstance(TABLE[node.op].lowering, Inline) else ""
        # A copy, since a value may be a view of an argument.
        kept = tuple(np.array(value) for value in values)
        record = ValueRecord(name, position, node.op, node.types, node.source, title, kept, None)
        if not wanted.takes(record, top=not path):
            return
        if file is not None:
            print(record.text(limit), file=file)
        if target is not None:
            saved = _save(target, len(records), record)
            record = ValueRecord(name, position, node.op, node.types, node.source, title, (), saved)
        records.append(record)

    outputs = evaluate(graph, inputs, callbacks, watch)
    return Values(tuple(records), tuple(outputs), limit)


@frozen
class _Choice:
    """Which nodes are watched."""

    names: Collection[str] | None
    ops: Collection[str] | None
    positions: Collection[int] | None

    def takes(self, record: ValueRecord, top: bool) -> bool:
        if self.names is None and self.ops is None and self.positions is None:
            return True
        return (
            record.op in (self.ops or ())
            or (top and record.position in (self.positions or ()))
            or any(record.answers(name) for name in self.names or ())
        )


def _several(given: Any) -> Any:
    return (given,) if isinstance(given, (str, int)) else given


def _enter(entry: ActiveScope) -> str:
    """The way into a scope: a round of a loop, a branch."""
    lowering = TABLE[entry.node.op].lowering
    if isinstance(lowering, Branch):
        return f"%{entry.value}.branch{entry.scope}"
    if isinstance(lowering, Loop) and not lowering.counted and entry.scope == 0:
        return f"%{entry.value}.cond[{entry.count}]"
    if isinstance(lowering, Inline):
        return f"%{entry.value}.fallback"
    return f"%{entry.value}[{entry.count}]"


def _save(directory: Path, number: int, record: ValueRecord) -> Path:
    """One file for a node: .npy, or .npz where it has several values."""
    name = record.name.replace("%", "").replace("[", "@").replace("]", "")
    path = directory / f"{number:06d}.{name}.{record.op}"
    if len(record.values) == 1:
        path = path.with_name(path.name + ".npy")
        np.save(path, record.values[0], allow_pickle=False)
    else:
        path = path.with_name(path.name + ".npz")
        np.savez(path, *record.values)
    return path


def _show(value: Value, limit: int) -> str:
    if value.size <= limit:
        text = np.array2string(value, separator=", ", threshold=limit + 1)
    else:
        first = np.array2string(value.reshape(-1)[:limit], separator=", ", threshold=limit + 1)
        text = f"{first[:-1]}, … {value.size - limit} more]" if limit else f"[… {value.size}]"
    return "\n".join(f"  {line}" for line in text.splitlines())
