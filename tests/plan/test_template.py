"""Plans by templates are the plans that are made in full, whatever was met before."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from draw import draw_program
from plan.programs import EVERY

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.errors import TenfoldError
from tenfold.graph import Builder, Graph
from tenfold.graph.build import infer
from tenfold.graph.op import Element, Ranges, Scatter
from tenfold.kernel.ir.number import TableFacts
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.ops import TABLE
from tenfold.plan import Plan, make_plan
from tenfold.plan.fusion.fuse import fuse
from tenfold.plan.lowering import general
from tenfold.plan.steps import structure, templates
from tenfold.plan.steps.structure import numbered, structure_of
from tenfold.plan.steps.template import Template
from tenfold.plan.steps.templates import VAIN, Templates
from tenfold.types import TensorType

CAPABILITIES = BACKEND.capabilities(BACKEND.target())
Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "_every", {})
    monkeypatch.setattr(general, "_every", {})


def forget() -> None:
    """All templates, and what was lowered."""
    templates._every.clear()
    general._every.clear()


def planned(graph: Graph, donated: Sequence[int] = ()) -> Plan:
    return make_plan(again(graph), CAPABILITIES, donated)


def in_full(graph: Graph, donated: Sequence[int] = ()) -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Templates, "find", lambda *_: None)
        return make_plan(again(graph), CAPABILITIES, donated)


def again(graph: Graph) -> Graph:
    """The graph, without what was noted about it."""
    return Graph(graph.parameters, graph.nodes, graph.outputs, graph.effects)


def told(plan: Plan) -> list[Any]:
    """All that a plan says."""
    return [
        (
            one.graph, [n.source for n in one.graph.nodes], one.graph.to_bytes(), one.slots,
            one.steps, one.outputs, one.own, one.constants, one.arena_bytes, one.greatest_live,
            one.donated, one.notes, one.safe, [plan.every.index(p) for p in one.plans],
        )
        for one in plan.every
    ]  # fmt: skip


def zeros(*shape: int, dtype: Any = "f4") -> Any:
    return tn.spec(shape, dtype)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.T * 0.125) @ v


def block(x: Any, w: Any, g: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    h = centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) * g
    return x + np.tanh(attention(h @ w, h @ w.T, h)) @ w


def decode(x: Any, places: Any, keys: Any, values: Any, w: Any) -> Any:
    """One more token: two heads of eight."""
    known = keys.shape[1]
    x = x + places[known : known + 1]
    q, k, v = (h.reshape(1, 2, 8).swapaxes(0, 1) for h in np.split(x @ w, 3, axis=-1))
    keys = np.concatenate([keys, k], axis=1)
    values = np.concatenate([values, v], axis=1)
    seen = np.arange(known, known + 1)[:, None] >= np.arange(known + 1)
    mixed = softmax(np.where(seen, q @ keys.swapaxes(-1, -2), -1e9)) @ values
    return mixed.swapaxes(0, 1).reshape(1, 16), keys, values


def stencil(x: Any) -> Any:
    for _ in range(3):
        x[1:-1, 1:-1] = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) * 0.25
    return x.copy()


def nearest(x: Any, c: Any) -> Any:
    d = ((x[:, None] - c[None]) ** 2).sum(-1)
    one = d.argmin(1)[:, None] == np.arange(c.shape[0])
    return one.T.astype(x.dtype) @ x / np.maximum(one.sum(0), 1)[:, None]


def slices(x: Any) -> Any:
    n = x.shape[0]
    return x[n // 2 :], x[::2] * 2, x[::-1] + x[0], x[n // 3 : n // 2].sum()


def joined(x: Any, y: Any) -> Any:
    many = np.concatenate([x * 2, y, x, y + 1, *[x[:1] * k for k in range(2, 9)]])
    return many, np.stack([x[:3], y[:3]], axis=1), np.pad(x, (2, 1))


def reduced(x: Any) -> Any:
    """To a scalar that all elements read."""
    return (x - x.mean()) / x.std(), x.sum(axis=0)


def ordered(x: Any) -> Any:
    return np.sort(x, axis=0), np.argsort(x, axis=-1), x[np.argsort(x[:, 0])]


def written(x: Any, y: Any) -> Any:
    x[3 : 3 + y.shape[0]] = y
    x[0] += 1
    return x * 2


def unrolled(x: Any) -> Any:
    """Rounds that become a loop."""
    for k in range(20):
        x = np.tanh(x @ x.T) @ x * (k + 1.5)
    return x


def composed(x: Any) -> Any:
    return np.clip(x, 0.5, 2.5).cumsum(axis=0), x.cumprod(axis=0)


SQUARE = [(n,) for n in (5, 6, 7, 40, 41, 2, 3, 1, 0, 16, 33, 128, 129, 200, 34, 35)]
PAIRS = [(5, 8), (6, 8), (6, 9), (9, 9), (9, 6), (300, 60), (1, 8), (8, 1), (0, 5), (5, 0), (2, 2),
         (190, 190), (400, 100), (12, 70), (70, 12)]  # fmt: skip
FULL = [p for p in PAIRS if min(p)]
PROGRAMS: dict[str, tuple[Function, Sequence[tuple[int, ...]], Callable[..., list[Any]]]] = {
    "softmax": (softmax, FULL, lambda n, m: [zeros(n, m)]),
    "attention": (attention, FULL, lambda n, m: [zeros(n, 8), zeros(m, 8), zeros(m, 6)]),
    "block": (block, SQUARE, lambda n: [zeros(n, 16), zeros(16, 16), zeros(16)]),
    "block of any width": (block, PAIRS, lambda n, m: [zeros(n, m), zeros(m, m), zeros(m)]),
    "decode": (
        decode, [(n,) for n in range(60)],
        lambda n: [zeros(1, 16), zeros(64, 16), zeros(2, n, 8), zeros(2, n, 8), zeros(16, 48)],
    ),
    "stencil": (stencil, [p for p in PAIRS if min(p) > 2], lambda n, m: [zeros(n, m)]),
    "nearest": (nearest, FULL, lambda n, m: [zeros(n, 3), zeros(m, 3)]),
    "slices": (slices, FULL, lambda n, m: [zeros(n, m)]),
    "joined": (joined, [p for p in PAIRS if min(p) > 2], lambda n, m: [zeros(n), zeros(m)]),
    "reduced": (reduced, FULL, lambda n, m: [zeros(n, m, dtype="f8")]),
    "ordered": (ordered, FULL, lambda n, m: [zeros(n, m)]),
    "written": (
        written, [(40, 9), (40, 30), (41, 31), (99, 9), (9, 2), (9, 1), (5000, 4090), (5001, 9)],
        lambda n, m: [zeros(n), zeros(m)],
    ),
    "unrolled": (unrolled, [(5,), (6,), (7,), (80,)], lambda n: [zeros(n, n)]),
    "composed": (composed, [*PAIRS, (587, 8), (588, 9), (600, 8)], lambda n, m: [zeros(n, m)]),
    **{
        f.__name__: (f, [p for p in PAIRS if min(p) > 1], lambda n, m: [zeros(n, m), zeros(n, m)])
        for f in EVERY
    },
}  # fmt: skip


def graphs(name: str) -> list[Graph]:
    return traced(*PROGRAMS[name])


def traced(
    function: Function, sizes: Sequence[tuple[int, ...]], arguments: Callable[..., list[Any]]
) -> list[Graph]:
    return [tn.trace(function, *arguments(*n)) for n in sizes]


@pytest.mark.parametrize("name", PROGRAMS)
def test_plans_do_not_depend_on_what_was_met_before(name: str) -> None:
    every = graphs(name)
    wanted = [told(in_full(graph)) for graph in every]
    for seed in range(2):
        forget()
        order = list(range(len(every))) * 2
        random.Random(seed).shuffle(order)
        for at in order:
            assert told(planned(every[at])) == wanted[at]


def made_in_full(name: str, lengths: Sequence[int]) -> list[int]:
    """The lengths for which an outline or a template is made, in order."""
    found = []
    function, _, arguments = PROGRAMS[name]
    every = traced(function, [(n,) for n in lengths], arguments)
    for n, graph in zip(lengths, every, strict=True):
        tn.stats.reset()
        planned(graph)
        if tn.stats()["outlines"] or tn.stats()["templates"]:
            found.append(n)
    return found


def test_lengths_of_a_growing_cache_share_a_template() -> None:
    # Up to three a length may be the number of an axis. The fourth is the first of its structure,
    # at the fifth a template is made. Later ones are where it, or the next, is also another extent:
    # that of a head (8), of a token (16), where a part begins (16, 32) or the last one ends (48).
    few = [0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 47, 48]
    assert made_in_full("decode", range(60)) == few


def test_lengths_of_a_block_share_a_template() -> None:
    # Sixteen is also its width. From 33 on products of 33 rows by 33 are the library's, and from
    # 65 on those of 65 rows by sixteen.
    assert made_in_full("block", range(5, 120)) == [5, 6, 16, 33, 65]


def test_what_fuses_otherwise_has_a_template_of_its_own() -> None:
    # Beyond 32,768 elements a mean is stored before others read it.
    function, arguments = PROGRAMS["reduced"][0], PROGRAMS["reduced"][2]
    steps = {n: len(planned(tn.trace(function, *arguments(n, 70))).steps) for n in (9, 8, 7, 900)}
    assert steps[9] == steps[8] == steps[7] < steps[900]


def test_sizes_that_turn_out_equal() -> None:
    """The best of some lines are found by where lines begin: one node, if both have as many."""

    def best(*shapes: tuple[int, ...]) -> Graph:
        builder = Builder(TABLE)
        inputs = [builder.parameter(tn.spec(shape, "f4")) for shape in shapes]
        return builder.finish([builder.node("top_k", [x], {"k": 7})[0] for x in inputs])

    every = [best((5, 12, 30), (6, n, 30)) for n in (8, 9, 10, 11)]
    assert len({structure_of(graph, TABLE).key for graph in every}) == 1
    found = [planned(graph) for graph in every]
    assert [told(plan) for plan in found] == [told(in_full(graph)) for graph in every]
    lines = [Counter(node.op for node in plan.graph.nodes)["iota"] for plan in found]
    assert lines == [2, 2, 1, 2]


def test_templates_that_hold_for_nothing_else_are_made_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Template, "at", lambda *_: None)
    tn.stats.reset()
    for n in range(5, 25):
        planned(tn.trace(softmax, zeros(n, 40)))
    assert (tn.stats()["templates"], tn.stats()["outlines"]) == (VAIN, 20)


def test_the_first_templates_of_a_structure_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "EACH", 1)
    kept = templates.templates_of(TABLE, CAPABILITIES)
    function, _, arguments = PROGRAMS["block"]
    for n in (20, 21, 22, 40, 41, 20, 21, 40):  # by two templates in turn
        graph = tn.trace(function, *arguments(n))
        assert told(planned(graph)) == told(in_full(graph))
    (known,) = kept._known.values()
    assert len(known.templates or ()) == 1
    assert kept._weight == known.weight == 2 * known.nodes


def test_structures_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "NODES", 20)
    kept = templates.templates_of(TABLE, CAPABILITIES)
    for n in (*range(2, 9), 8, 7, 6, 6, 6):
        planned(tn.trace(lambda *xs: sum(xs), *[zeros(40)] * n))
        assert kept._weight == sum(known.weight for known in kept._known.values())
    assert 0 < kept._weight <= 20


def test_kernels_begin_while_a_plan_is_made() -> None:
    for graph in graphs("block"):
        begun: list[list[SizedKernel]] = [[], []]
        planned(graph)
        make_plan(again(graph), CAPABILITIES, begin=begun[0].append)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Templates, "find", lambda *_: None)
            make_plan(again(graph), CAPABILITIES, begin=begun[1].append)
        assert begun[0] == begun[1]


def test_donated_arguments() -> None:
    for graph in graphs("softmax"):
        for donated in ((), (0,)):
            assert told(planned(graph, donated)) == told(in_full(graph, donated))


def test_literals_and_lines_are_those_of_the_graph() -> None:
    def times(k: float) -> Graph:
        return tn.trace(lambda x, w: (x * k) @ w.T @ w, zeros(300, 50), zeros(50, 50))

    found = [planned(times(k)) for k in (2.5, 3.5, 4.5)]
    assert len({step.params for plan in found for step in plan if step.kind == "kernel"}) == 3
    assert told(planned(times(1.0))) == told(in_full(times(1.0)))  # an immediate
    one = tn.trace(lambda x: (x * 2.5).sum(axis=0), zeros(40, 50))
    two = tn.trace(lambda x: (x * 2.5).sum(axis=0), zeros(40, 50))
    assert [planned(g).graph.nodes[-1].source for g in (one, one, two)] == [
        one.nodes[-1].source, one.nodes[-1].source, two.nodes[-1].source,
    ]  # fmt: skip


def test_many_threads() -> None:
    every = [graph for name in ("block", "attention", "decode") for graph in graphs(name)]
    wanted = [told(in_full(graph)) for graph in every]
    order = list(range(len(every))) * 2
    random.Random(0).shuffle(order)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda at: told(planned(every[at])), order))
    assert found == [wanted[at] for at in order]


def resized(graph: Graph, source: random.Random) -> Graph | None:
    """A graph with other sizes, if that is one."""
    way = source.random()
    to = {
        n: n + source.choice((0, 1, 2, 7)) if way < 0.5 else n * source.choice((1, 2, 3))
        if way < 0.8 else source.choice((n, source.randint(0, 2000)))
        for n in structure_of(graph, TABLE).sizes
    }  # fmt: skip

    try:
        return structure.resized(graph, to, TABLE)
    except TenfoldError:
        return None


def by_op(name: str) -> dict[Any, list[Graph]]:
    """Graphs of an op, by its attributes and the shapes of its operands; they differ in dtypes."""
    found: dict[Any, dict[Any, Graph]] = {}
    for sample in TABLE[name].samples(np.random.default_rng(0)):
        types = tuple(
            i if isinstance(i, TensorType) else tn.spec(i.shape, i.dtype) for i in sample.inputs
        )
        builder = Builder(TABLE)
        inputs = [builder.parameter(type) for type in types]
        values = builder.node(name, inputs, sample.attributes, sample.scopes)
        more = [builder.node("not", [v])[0] for v in values if builder.types[v].kind == "b"]
        more += [builder.node("neg", [v])[0] for v in values if builder.types[v].kind in "if"]
        form = tuple(t.shape for t in types), str(sample.attributes)
        found.setdefault(form, {})[types] = builder.finish([*values, *more])
    return {form: list(graphs.values()) for form, graphs in found.items()}


@pytest.mark.parametrize("name", TABLE)
def test_every_op(name: str) -> None:
    source = random.Random(0)
    for graph, *_ in by_op(name).values():
        forget()
        found = [told(planned(graph)) for _ in range(3)]
        assert found == [told(in_full(graph))] * 3
        if not any(node.scopes for node in graph.nodes):
            others = [resized(graph, source) for _ in range(3)]
            for other in filter(None, others):
                assert told(planned(other)) == told(in_full(other))


@pytest.mark.parametrize("name", TABLE)
def test_types_are_inferred_alike_by_numbers(name: str) -> None:
    """Passes make nodes anew, and infer their types from Numbers."""
    for graph in (graph for graphs in by_op(name).values() for graph in graphs):
        other, _ = with_numbers(graph)
        for node in other.nodes:
            types = tuple(other.types[v] for v in node.inputs)
            assert infer(node.op, TABLE, types, node.attributes, node.scopes) == node.types


def with_numbers(graph: Graph) -> tuple[Graph, TableFacts]:
    structure = structure_of(graph, TABLE)
    facts = TableFacts(structure.sizes, structure.least)
    sizes = dict(zip(structure.sizes, facts.sizes, strict=True))
    return numbered(graph, sizes, TABLE), facts


@pytest.mark.parametrize(
    "name", [n for n, op in TABLE.items() if isinstance(op.lowering, Element | Ranges | Scatter)]
)
def test_ops_are_read_alike_by_numbers(name: str) -> None:
    """A node reads its operands and weighs the same, whether its extents are Numbers or not."""
    for graph in (graph for graphs in by_op(name).values() for graph in graphs):
        both = graph, with_numbers(graph)[0]
        plain, other = (fuse(one, TABLE, CAPABILITIES) for one in both)
        assert plain.accesses == other.accesses
        assert plain.notes == other.notes


def drawn(seed: int) -> Iterator[Graph]:
    graph, _ = draw_program(seed, (3, 8, 14, 25)[seed % 4])
    yield from (*graph.scopes(), graph)


def test_drawn_programs() -> None:
    """Their own plans, and those for other sizes."""
    source, found = random.Random(0), 0
    for seed in range(60):
        for graph in drawn(seed):
            forget()
            own = [told(planned(graph)) for _ in range(2)]
            assert own == [told(in_full(graph))] * 2
            if any(node.scopes for node in graph.nodes):
                continue
            others = [resized(graph, source) for _ in range(4)]
            for other in others:
                if other is not None:
                    tn.stats.reset()
                    assert told(planned(other)) == told(in_full(other))
                    found += tn.stats()["outlines"] == 1 and other != graph
    assert found > 50  # only the one that was made in full
