"""Graphs as data: built, finished, compared, printed, filed."""

import hashlib
from dataclasses import replace

import msgpack
import numpy as np
import pytest

from tenfold.errors import FileError, GraphError, ShapeError
from tenfold.graph import Builder, Graph, Node, check
from tenfold.graph.file import _HEADER, MAGIC
from tenfold.graph.text import parse as parse_text
from tenfold.ops import TABLE
from tenfold.reference.evaluate import evaluate
from tenfold.types import TensorType, parse_type

F32 = parse_type("f32[3]")


def parse(text: str) -> Graph:
    return parse_text(text, lambda graph: check(graph, TABLE))


def constant(builder: Builder, array) -> int:
    array = np.asarray(array)
    type = TensorType(array.dtype, array.shape)
    return builder.node("constant", (), {"data": array.tobytes(), "type": repr(type)})[0]


def test_equal_nodes_are_one_node():
    b = Builder(TABLE)
    x = b.parameter(F32)
    assert b.node("add", (x, x)) == b.node("add", (x, x))
    assert len(b) == 1


def test_a_type_rule_is_asked_once_a_kind():
    asked = []

    def infer(types, attributes, scopes):
        asked.append(types)
        return TABLE["slice"].infer(types, attributes, scopes)

    b = Builder({**TABLE, "slice": replace(TABLE["slice"], infer=infer)})
    x, y = b.parameter(F32), b.parameter(F32)
    cut = {"starts": (0,), "stops": (2,), "steps": (1,)}
    for _ in range(3):
        for value in (x, y, *b.node("neg", (x,))):
            b.node("slice", (value,), cut)
    assert (len(asked), len(b)) == (1, 4)
    assert b.node("slice", (x,), cut) != b.node("slice", (y,), cut)
    b.node("slice", (x,), cut | {"stops": (3,)})
    b.node("slice", (b.parameter(parse_type("f64[3]")),), cut)
    assert (len(asked), len(b)) == (3, 6)


def test_a_node_that_breaks_a_rule_leaves_nothing():
    b = Builder(TABLE)
    x, y = b.parameter(F32), b.parameter(parse_type("f32[4]"))
    for _ in range(2):
        with pytest.raises(ShapeError, match="do not broadcast"):
            b.node("add", (x, y))
    assert len(b) == 0
    assert b.node("add", (x, x)) == (2,)


def test_nodes_with_effects_are_never_one():
    b = Builder(TABLE)
    x = b.parameter(F32)
    effect = next(op for op in TABLE.values() if op.effect and not op.effect.answers)
    attributes = dict(effect.samples(np.random.default_rng(0))[0].attributes)
    for _ in range(2):
        b.node(effect.name, (x,), attributes)
    assert len(b.finish([x]).effects) == 2


def test_dead_nodes_are_gone():
    b = Builder(TABLE)
    x = b.parameter(F32)
    b.node("exp", (x,))
    (y,) = b.node("neg", (x,))
    assert [n.op for n in b.finish([y]).nodes] == ["neg"]


def test_digests_do_not_depend_on_the_order_of_tracing():
    def build(first: str, second: str) -> Graph:
        b = Builder(TABLE)
        x = b.parameter(F32)
        made = {name: b.node(name, (x,))[0] for name in (first, second)}
        return b.finish(b.node("add", (made["exp"], made["neg"])))

    one, other = build("exp", "neg"), build("neg", "exp")
    assert one.digest == other.digest
    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.float32(0.0), np.float32(-0.0)),
        (np.array(0x7FC00000, "u4").view("f4"), np.array(0x7FC00001, "u4").view("f4")),
        (np.True_, np.int8(1)),
        (np.int32(1), np.int64(1)),
        (np.int32(1), np.uint32(1)),
        (np.zeros(2, "f4"), np.zeros((2, 1), "f4")),
    ],
)
def test_constants_count_bit_for_bit(one, other):
    def build(array) -> Graph:
        b = Builder(TABLE)
        return b.finish([constant(b, array)])

    assert build(one) == build(one)
    assert build(one).digest != build(other).digest


def test_nan_equals_itself():
    b = Builder(TABLE)
    assert constant(b, np.float32("nan")) == constant(b, np.float32("nan"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("graph (%0: f32[3]) {\n return %0\n}", "graph (%0: f64[3]) {\n return %0\n}"),
        ("graph (%0: f32[3]) {\n return %0\n}", "graph (%0: f32[4]) {\n return %0\n}"),
        (
            "graph (%0: f32[3,3]) {\n%1 = reduce_sum %0 {axes=(0,)} : f32[3]\nreturn %1\n}",
            "graph (%0: f32[3,3]) {\n%1 = reduce_sum %0 {axes=(1,)} : f32[3]\nreturn %1\n}",
        ),
    ],
)
def test_types_and_attributes_count(one, other):
    assert parse(one).digest != parse(other).digest
    assert parse(one) != parse(other)


def test_names_and_lines_do_not_count():
    one = parse("graph (%0: f32 'x') {\n  %1 = neg %0 : f32  # a.py:1, in f\n  return %1\n}")
    other = parse("graph (%0: f32 'y') {\n  %1 = neg %0 : f32\n  return %1\n}")
    assert one == other


def scoped() -> Graph:
    return parse(
        """graph (%0: bool 'p', %1: f32[3] 'a string, with x=1 in it') {
          %2 = switch %0 %1 [@0 @1] : f32[3]
          %3, %4 = switch %0 %1 [@2 @2] : f32[3], f32[3]
          %5 = add %2 %3 : f32[3]
          return %5 %4
        }
        @0 = graph (%0: f32[3]) {
          %1 = neg %0 : f32[3]
          return %1
        }
        @1 = graph (%0: f32[3]) {
          %1 = constant {data=0x0000803f, type='f32'} : f32
          %2 = add %0 %1 : f32[3]
          return %2
        }
        @2 = graph (%0: f32[3]) {
          return %0 %0
        }"""
    )


def test_text_round_trips():
    graph = scoped()
    assert parse(str(graph)) == graph
    assert [p.name for p in parse(str(graph)).parameters] == ["p", "a string, with x=1 in it"]
    assert str(graph).count("graph (") == 4  # each distinct scope once


def test_text_with_a_limit_says_what_it_left_out():
    assert "… 2 more nodes" in scoped().text(limit=1)


def test_bytes_round_trip_with_names_and_lines():
    b = Builder(TABLE)
    x = b.parameter(F32, "x")
    from tenfold.graph import Source

    (y,) = b.node("neg", (x,), source=Source("model.py", 12, "f"))
    graph = b.finish([y], locate=lambda source: source)
    back = Graph.from_bytes(graph.to_bytes())
    assert back == graph
    assert back.nodes[0].source == Source("model.py", 12, "f")
    assert back.parameters[0].name == "x"
    assert Graph.from_bytes(graph.to_bytes(bare=True)).parameters[0].name == ""
    assert Graph.from_bytes(scoped().to_bytes()) == scoped()


def test_every_damaged_byte_is_noticed():
    data = scoped().to_bytes()
    for i in range(len(data)):
        broken = bytearray(data)
        broken[i] ^= 1
        with pytest.raises(FileError):
            Graph.from_bytes(bytes(broken))
    for length in range(0, len(data), 7):
        with pytest.raises(FileError):
            Graph.from_bytes(data[:length])


def filed(types=(), scopes=(), forms=(), parameters=(), flat=(), outputs=(0,), effects=()) -> bytes:
    """A file of one graph of these parts, whatever they are; its checksum is right."""
    section = msgpack.packb((types, scopes, forms, parameters, flat, outputs, effects))
    payload = msgpack.packb(([section], ()))
    return MAGIC + (1).to_bytes(2, "little") + hashlib.sha256(payload).digest() + payload


NEG = ("neg", (), (0,), (), 1)


@pytest.mark.parametrize(
    "parts",
    [
        {"types": [("f32", -1)], "parameters": [0]},
        {"types": [("f32", 1.5)], "parameters": [0]},
        {"types": [("f32", "9" * 5000)], "parameters": [0]},
        {"types": [()], "parameters": [0]},
        {"types": 5, "parameters": [0]},
        {"types": [("f32",)], "parameters": [0], "outputs": [1 << 62]},
        {"types": [("f32",)], "parameters": [0], "outputs": [-1]},
        {"types": [("f32",)], "parameters": [0], "effects": [0]},
        {"types": [("f32",)], "parameters": [0], "forms": [NEG], "flat": [-1, 1]},
        {"types": [("f32",)], "parameters": [0], "forms": [NEG], "flat": [0, -1]},
        {"types": [("f32",)], "parameters": [0], "forms": [NEG], "flat": [0, 1 << 62]},
        {"types": [("f32",)], "parameters": [0], "forms": [(*NEG[:4], -1)], "flat": [0]},
        {"types": [("f32",)], "parameters": [0], "forms": [(*NEG[:4], 1 << 62)], "flat": [0, 1]},
        {"types": [("f32",)], "parameters": [0], "forms": [(*NEG[:3], (0,), 1)], "flat": [0, 1]},
        {"types": [("f32",)], "parameters": [0], "scopes": ["0" * 64]},
        # Ten thousand nodes of a thousand outputs each, in eleven kilobytes.
        {
            "types": [("f32",)],
            "parameters": [0],
            "forms": [("neg", (), (0,) * 1000, (), 0)],
            "flat": [0] * 10_000,
        },
    ],
)
def test_hostile_parts_are_refused(parts):
    with pytest.raises(FileError):
        Graph.from_bytes(filed(**parts))


def test_a_type_of_no_elements_may_have_any_other_extent():
    graph = Graph.from_bytes(filed([("f32", 0, 1 << 62)], parameters=[0]))
    assert graph.parameters[0].type.size == 0


def test_lists_of_nothing_are_refused():
    payload = b"\xdd" + (1 << 20).to_bytes(4, "big") + b"\x90" * (1 << 20)
    data = MAGIC + (1).to_bytes(2, "little") + hashlib.sha256(payload).digest() + payload
    with pytest.raises(FileError, match="more lists"):
        Graph.from_bytes(data)


def test_a_file_with_a_right_checksum_and_wrong_content_is_refused():
    payload = bytearray(scoped().to_bytes()[_HEADER:])
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(500):
        broken = bytearray(payload)
        broken[rng.integers(len(broken))] = rng.integers(256)
        head = MAGIC + (1).to_bytes(2, "little") + hashlib.sha256(broken).digest()
        try:
            check(Graph.from_bytes(head + bytes(broken)), TABLE)
        except (FileError, GraphError):
            refused += 1
    assert refused > 300  # the rest changed a constant, a name or a shape into a valid other


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no graph"),
        ("hello", "starts with"),
        ("graph (%0: f32) {\n}", "no return"),
        ("graph (%0: f32) {\n%5 = neg %0 : f32\nreturn %5\n}", "numbered in order"),
        ("graph (%0: f32) {\n%1 = bogus %0 : f32\nreturn %1\n}", "'bogus' is no op"),
        ("graph (%0: f32) {\n%1 = neg %0 : f64\nreturn %1\n}", "should be"),
        ("graph (%0: f32) {\n%1 = neg %3 : f32\nreturn %1\n}", "not made before"),
        ("graph (%0: f32) {\n%1 = neg %0 %0 : f32\nreturn %1\n}", "1 needed"),
        ("graph (%0: f32) {\nreturn %9\n}", "not all values"),
        ("graph (%0: f32) {\n! %1 = neg %0 : f32\nreturn %1\n}", "effects"),
        ("graph (%0: bool) {\n%1 = switch %0 [@7] : f32\nreturn %1\n}", "before its use"),
        ("graph (%0: f32[3]) {\n%1 = reduce_sum %0 {axes=(True,)} : f32\nreturn %1\n}", "no axis"),
        ("graph (%0: f32[3]) {\n%1 = reverse %0 {axes=[0]} : f32[3]\nreturn %1\n}", "tuples"),
    ],
)
def test_wrong_texts(text, message):
    with pytest.raises(GraphError, match=message):
        parse(text)


def test_a_failed_check_shows_the_text_around_the_fault():
    nodes = [Node("neg", (i,), (), (), (F32,)) for i in range(6)]
    nodes[4] = Node("neg", (4,), (), (), (parse_type("f64[3]"),))
    graph = Graph((parse_parameter(),), tuple(nodes), (6,))
    with pytest.raises(GraphError) as caught:
        check(graph, TABLE)
    assert " > %5 = neg %4 : f64[3]" in str(caught.value)
    assert "   %4 = neg %3 : f32[3]" in str(caught.value)


def parse_parameter():
    from tenfold.graph import Parameter

    return Parameter(F32)


@pytest.mark.parametrize("kind", ["chain", "doubling"])
def test_nothing_recurses_and_everything_stays_small(kind):
    depth = 100_000 if kind == "chain" else 10_000
    b = Builder(TABLE)
    x = v = b.parameter(F32)
    for _ in range(depth):
        (v,) = b.node("add", (v, x if kind == "chain" else v))
    graph = b.finish([v])
    assert len(graph.nodes) == depth
    data = graph.to_bytes()
    assert len(data) < 48 * depth
    back = Graph.from_bytes(data)
    assert back.digest == graph.digest
    assert back == graph
    assert len(graph.text(limit=10).splitlines()) == 14
    (result,) = evaluate(graph, [np.zeros(3, "f4")])
    assert result.tolist() == [0, 0, 0]


def test_deeply_nested_scopes():
    graph = parse("graph (%0: f32) {\n  %1 = neg %0 : f32\n  return %1\n}")
    depth = 3000
    for _ in range(depth):
        b = Builder(TABLE)
        x = b.parameter(parse_type("f32"))
        p = constant(b, np.True_)
        graph = b.finish(b.node("switch", (p, x), scopes=(graph, graph)))
    assert Graph.from_bytes(graph.to_bytes()) == graph
    assert parse(str(graph)) == graph
    assert evaluate(graph, [np.float32(2)])[0] == -2


def test_last_uses():
    graph = parse(
        "graph (%0: f32, %1: f32) {\n %2 = add %0 %0 : f32\n %3 = neg %2 : f32\n return %3\n}"
    )
    assert graph.last_uses == ((0,), (2,))
