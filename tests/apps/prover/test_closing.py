"""The closure by products and joins against the bottom-up reference, and its limits."""

from __future__ import annotations

import tracemalloc
import warnings
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.apps.prover.closure import closing, products, relations
from tenfold.apps.prover.closure.allowance import Allowance, bytes_of
from tenfold.apps.prover.closure.closing import close_by_cost
from tenfold.apps.prover.closure.fixpoint import Closure, close_by_joins
from tenfold.apps.prover.closure.joins import Packing
from tenfold.apps.prover.closure.layers import Layer, put_together
from tenfold.apps.prover.closure.lookups import lookup
from tenfold.apps.prover.closure.paths import path_of
from tenfold.apps.prover.closure.relations import Table, inverted, numbers_of
from tenfold.apps.prover.columns import END
from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.evaluation import evaluate
from tenfold.apps.prover.input.load import load
from tenfold.apps.prover.input.program import Clause, Program, program_of
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.reference.bottom_up import close
from tenfold.apps.prover.report.bounds import bounded_metrics, bounds
from tenfold.apps.prover.report.ranks import KINDS, Rank
from tenfold.apps.prover.report.summary import report
from tenfold.apps.prover.result import Finding
from tenfold.apps.prover.settings import Settings

from .conftest import write
from .generated import chains, programs


def closed(program: Program, limit: int | None = None, backend: str = "evaluator") -> Closure:
    """By bits and by tables, which have to agree."""
    made = close_by_cost(program, limit, backend)
    with patch.object(relations, "BITS", -1), patch.object(closing, "SAMPLE", 3):
        by_tables = close_by_cost(program, limit, backend)
    assert made.keys.tobytes() == by_tables.keys.tobytes()
    assert made.heights.tobytes() == by_tables.heights.tobytes()
    assert made.complete == by_tables.complete
    return by_tables


def drawn(extent: int, predicates: int, facts: int, rules: int, seed: int) -> Program:
    """A random program of paths."""
    random = np.random.default_rng(seed)
    found = {
        (int(random.integers(predicates)), *map(int, random.integers(extent, size=2)))
        for _ in range(facts)
    }
    clauses = []
    for _ in range(rules):
        length = int(random.integers(1, 5))
        stops = [-1, *range(-3, -2 - length, -1), -2]
        atoms = []
        for a, b in pairwise(stops):
            pair = (a, b) if random.integers(2) else (b, a)
            atoms.append((int(random.integers(predicates)), *pair))
        head = (int(random.integers(predicates)), -1, -2)
        clauses.append(Clause(head, tuple(atoms[i] for i in random.permutation(length))))
    names = tuple(f"p{i}" for i in range(predicates))
    constants = tuple(f"c{i}" for i in range(extent))
    return Program(names, constants, tuple(sorted(found)), tuple(dict.fromkeys(clauses)))


# Paths.


def test_what_is_a_path() -> None:
    made = write("r(X,Y) :- p(Z,X), q(Z,Y).")
    (clause,) = made.clauses
    found = path_of(clause)
    assert found is not None
    assert [(made.predicates[p], inverse) for p, inverse in found.links] == [
        ("p", True),
        ("q", False),
    ]
    for text in (
        "r(X,X) :- p(X,Y).",
        "r(X,a) :- p(X,Y).",
        "r(X,Y) :- p(X,a), q(X,Y).",
        "r(X,Y) :- p(X,Z), q(Z,Z), p(Z,Y).",
        "r(X,Y) :- p(X,Y), q(X,Y).",
        "r(X,Y) :- p(X,Y), q(A,B).",
        "r(X,Y) :- p(X,Y), q(A,B), q(B,A).",
        "r(X,Y) :- p(X,Z), q(Y,W).",
        "r(a,b) :- .",
    ):
        assert path_of(write(text).clauses[0]) is None, text


# Tables.


@given(st.integers(1, 3), st.integers(1, 9), st.integers(0, 30), st.integers(0, 99))
def test_inverted_twice_is_the_same(matrices: int, extent: int, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    entries = np.unique(random.integers(0, matrices * extent * extent, count))

    def table_of(entries: np.ndarray) -> Table:
        lines, columns = np.divmod(entries, extent)
        return Table.of(matrices, extent, numbers_of(*np.divmod(lines, extent), extent), columns)

    table, all_ = table_of(entries), range(matrices)
    turned = inverted(table, all_)
    dense = np.zeros((matrices, extent, extent), bool)
    dense.reshape(-1)[entries] = True
    again = table_of(np.flatnonzero(dense.transpose(0, 2, 1)))
    assert [part.tolist() for part in turned] == [part.tolist() for part in again]
    assert inverted(turned, all_).items.tolist() == table.items.tolist()
    assert table.sizes().tolist() == dense.sum(axis=(1, 2)).tolist()
    last = inverted(table, [matrices - 1])
    assert last.items.tolist() == turned.items[turned.starts[turned.bounds()[-2]] :].tolist()
    bits = np.zeros((matrices, extent, 1), np.uint64)
    relations.put(bits, 0, table)
    unpacked = np.unpackbits(bits.view(np.uint8), axis=-1, bitorder="little")[..., :extent]
    assert (unpacked == dense).all()


# Closures.


@settings(max_examples=60, deadline=None)
@given(st.one_of(programs(body=3), chains()), st.sampled_from([None, 0, 1, 2]))
def test_generated_programs(program: Program, limit: int | None) -> None:
    expected = close(program, limit)
    made = closed(program, limit)
    assert made.by_triple() == expected.heights
    assert made.complete == expected.complete


@pytest.mark.parametrize("seed", range(6))
def test_compiled_paths(seed: int) -> None:
    """Bits, tables, several rounds, and rows that find no room at first."""
    program = drawn((20, 70, 130)[seed % 3], 5, 60, 8, seed)
    for limit in (1, 3, None):
        expected = close(program, limit)
        with patch.object(products, "LEAST", 1), patch.object(products, "ROOM", 1 << 10):
            made = closed(program, limit, "compiled")
        assert made.by_triple() == expected.heights
        assert made.complete == expected.complete


def test_rows_without_room_are_done_again() -> None:
    """Ranges of many rows of which each fills all of the room."""
    names = tuple(f"c{i}" for i in range(40))
    facts = tuple((0, s, o) for s in range(40) for o in range(40))
    whole = Program(("p", "q"), names, facts, (Clause((1, -1, -2), ((0, -1, -3), (0, -3, -2))),))
    calls = []
    multiply = products.multiply.on("evaluator")

    def counted(*args: object, **given: object) -> object:
        calls.append(1)
        return multiply(*args, **given)

    with (
        patch.object(products, "LEAST", 1),
        patch.object(products, "ROOM", 1),
        patch.object(type(products.multiply), "on", lambda *_: counted),
    ):
        made = close_by_cost(whole, backend="evaluator")
    assert len(calls) > 2  # 1 would do if there were room
    assert len(made.keys) == 2 * 1600
    assert made.complete


def test_rules_that_are_no_paths_go_by_joins() -> None:
    text = """p(a,b).
    p(b,c).
    q(c,d).
    q(d,d).
    r(X,Y) :- p(X,Z), p(Z,Y).
    s(X,a) :- r(X,Y).
    r(X,X) :- q(X,X).
    p(X,Y) :- s(X,Y), q(Y,Z).
    t(X,Y) :- r(X,Z), s(Z,Y).
    q(a,a) :- .
    """
    program = write(text)
    for limit in (None, 0, 1, 2, 3):
        expected = close(program, limit)
        made = closed(program, limit)
        assert made.by_triple() == expected.heights
        assert made.complete == expected.complete


def test_long_chains_have_many_layers() -> None:
    """More heights than a byte has."""
    names = tuple(f"c{i:03}" for i in range(300))
    facts = tuple((0, i, i + 1) for i in range(299))
    rules = (Clause((1, -1, -2), ((0, -1, -2),)), Clause((1, -1, -2), ((1, -1, -3), (0, -3, -2))))
    made = close_by_cost(Program(("p", "q"), names, facts, rules))
    assert made.complete
    assert made.height == 299
    assert len(made.keys) == 299 + 299 * 300 // 2


def test_many_rounds_of_tables() -> None:
    """Each has sizes of its own; no warning is given of it."""
    walk = "\n".join(f"p(c{i:02},c{i + 1:02})." for i in range(20))
    program = write(walk + "\nq(X,Y) :- p(X,Y).\nq(X,Y) :- q(X,Z), p(Z,Y).")
    with patch.object(relations, "BITS", -1), warnings.catch_warnings():
        warnings.simplefilter("error")
        made = close_by_cost(program)
    assert made.by_triple() == close(program).heights
    assert made.height == 20


def test_keys_that_leave_no_room_for_heights() -> None:
    program = program_of(load("family:families=1"))
    expected = closed(program)
    wide = expected.packing._replace(reverse=np.int64(1) << 62)
    parts = [expected.keys[expected.heights == h] for h in range(expected.height + 1)]
    keys, heights = put_together([Layer.of_keys(part, wide) for part in parts], wide)
    assert keys.tobytes() == expected.keys.tobytes()
    assert heights.tobytes() == expected.heights.tobytes()


def test_few_facts_of_many_names_go_by_joins() -> None:
    program = write("p(a,b).\nq(X,Y) :- p(Y,X).")
    with patch.object(closing, "FEW", 0), patch.object(closing, "SPARSE", 0):
        assert close_by_cost(program, backend="evaluator").by_triple() == close(program).heights


def test_all_sets_by_products_and_by_joins(data: Path) -> None:
    for name in ("countries_s3", "family"):
        program = program_of(load(str(data / name)))
        made, joined = closed(program, 10, "compiled"), close_by_joins(program, 10)
        assert made.keys.tobytes() == joined.keys.tobytes()
        assert made.heights.tolist() == joined.heights.tolist()
        assert made.complete == joined.complete


# Limits.


def small() -> Program:
    """A path of twelve, and what can be reached: a fact more or less at each of many heights."""
    walk = "\n".join(f"p(c{i:02},c{i + 1:02})." for i in range(12))
    return write(walk + "\nq(X,Y) :- p(X,Y).\nq(X,Y) :- q(X,Z), p(Z,Y).")


def test_facts_are_bounded_at_a_whole_height() -> None:
    program = small()
    whole = close(program)
    counts = np.cumsum([n for _, n in sorted(Counter(whole.heights.values()).items())])
    assert len(counts) > 3
    for most in (1, int(counts[1]) - 1, int(counts[1]), int(counts[2]) + 1, int(counts[-1])):
        for made in (
            close_by_cost(program, backend="evaluator", allowance=Allowance(facts=most)),
            close_by_joins(program, backend="evaluator", allowance=Allowance(facts=most)),
        ):
            height = max(0, int(np.searchsorted(counts, most, "right")) - 1)
            assert made.by_triple() == {f: h for f, h in whole.heights.items() if h <= height}
            assert made.height == height
            assert made.complete == (most == counts[-1])
            assert made.stopped == (None if made.complete else "max-facts")


def test_memory_is_bounded() -> None:
    program = small()
    for close_it in (close_by_cost, close_by_joins):
        made = close_it(program, backend="evaluator", allowance=Allowance(memory=1))
        assert made.by_triple() == dict.fromkeys(program.facts, 0)
        assert (made.stopped, made.complete, made.height) == ("memory", False, 0)
        made = close_it(program, backend="evaluator", allowance=Allowance(memory=1 << 40))
        assert made.complete


@pytest.mark.parametrize("where", ["rows_of", "settle"])
def test_no_memory_at_all_is_a_limit_met(where: str) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError

    program = small()
    with patch.object(closing, where, full), patch.object(relations, "BITS", -1):
        made = close_by_cost(program, backend="evaluator")
    assert made.stopped == "memory"
    assert made.by_triple() == dict.fromkeys(program.facts, 0)


@pytest.mark.parametrize("backend", ["evaluator", "python"])
def test_a_run_that_is_stopped_says_bounds(backend: str) -> None:
    """What would have come lies within them."""
    asked = Settings("family:families=2,generations=3", backend=backend)
    whole = evaluate(asked)
    first = len(whole.program.facts) + 1
    for score in ("height", "binary"):
        exact = report(evaluate(replace(asked, score=score)))
        run = evaluate(replace(asked, score=score, max_facts=first))
        made = report(run)
        assert made["closure"]["stopped"] == "max-facts"
        assert made["closure"]["height"] == 0
        for mode in ("head", "tail", "both"):
            for kind in KINDS:
                low, high = made[mode]["bounds"]["mrr"][kind]
                assert 0 <= low <= exact[mode]["mrr"][kind] <= high <= 1
                assert low < high
                low, high = made[mode]["bounds"]["hits"]["10"][kind]
                assert low <= exact[mode]["hits"]["10"][kind] <= high
        assert "bounds" not in exact["both"]


CHAIN = """\
a1:0.9:p(x,y) -> q(x,y)
a2:0.5:q(x,y) -> r(x,y)
a3:0.8:p(y,x) -> r(x,y)
a4:0.9:r(x,y), q(y,z) -> r(x,z)
a5:0.3:s(x,y) -> r(y,x)
"""


@pytest.mark.parametrize("backend", ["evaluator", "python"])
def test_a_run_by_weight_that_is_stopped_knows_what_no_proof_can_outweigh(
    tmp_path: Path, backend: str
) -> None:
    """What weighs more than any chain of further rules has its rank; the others lie within their
    bounds."""
    draw = np.random.default_rng(3)
    names = [f"e{i}" for i in range(12)]
    lines = {f"{a}\t{p}\t{b}" for p in "ps" for a, b in draw.choice(names, (14, 2))}
    asked = {f"{a}\tr\t{b}" for a, b in draw.choice(names, (40, 2))}
    for name, text in (("train.txt", lines), ("test.txt", asked), ("rules.txt", [CHAIN])):
        (tmp_path / name).write_text("\n".join(sorted(text)))
    settings = Settings(str(tmp_path), backend=backend, score="weight")
    whole = evaluate(settings)
    heights = np.bincount(whole.closed.heights)  # type: ignore[union-attr]
    assert len(heights) > 3
    final = 0
    for most in np.cumsum(heights)[:-1].tolist():
        run = evaluate(replace(settings, max_facts=most))
        assert run.closed is not None
        assert run.closed.stopped == "max-facts"
        for one, other in zip(run.results, whole.results, strict=True):
            low, high = bounds(one.found, "weight")
            best, worst = other.found.rank, other.found.rank
            assert low.better <= best.better
            assert worst.better + worst.ties <= high.better + high.ties
            if one.found.final:
                assert one.found.rank == other.found.rank
                final += one.found.height != 0
    assert final


def test_bounds_of_a_query() -> None:
    proved = Finding(Rank(1, 2, 9), 3, Counter({Outcome.PROVED: 5, Outcome.DEPTH: 5}))
    assert bounds(proved, "height") == (proved.rank, proved.rank)
    assert bounds(proved, "binary") == (Rank(0, 4, 9), Rank(0, 9, 9))
    assert bounds(proved, "other") == (Rank(0, 0, 9), Rank(9, 0, 9))
    assert bounded_metrics([], "height")["mrr"] == dict.fromkeys(KINDS)


@pytest.mark.parametrize("text", ["", "G", "-1", "4X", "1.2.3G", "1e9", "0", "١G", "4 GG", "nan"])
def test_bytes_that_can_not_be_read(text: str) -> None:
    with pytest.raises(InputError, match="memory is"):
        bytes_of(text)


def test_limits_that_are_refused() -> None:
    for asked, match in (
        ({"max_facts": 0}, "max-facts is 0"),
        ({"memory": -5}, "memory is -5"),
        ({"memory": 5, "backend": "python"}, "counts no bytes"),
        ({"max_facts": 5, "engine": "rollout"}, "which .* has not"),
    ):
        with pytest.raises(InputError, match=match):
            Settings("family:", **asked)


def test_ranking_sorts_one_direction_in_memory_that_is_bounded_by_the_facts() -> None:
    """Facts lie sorted by subject. By object they are sorted once, and nothing else is."""
    draw = np.random.default_rng(0)
    packing = Packing(np.int64(12), np.int64(3 << 24))
    triples = [draw.integers(0, n, 1 << 16) for n in (3, 4000, 4000)]
    keys = np.unique(packing.keys(np.stack(triples, axis=1)))
    values = draw.integers(0, 5, len(keys))
    tracemalloc.start()
    made = lookup(keys, values, packing)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    kept = made.keys.nbytes + made.values.nbytes
    assert peak < kept + 28 * len(keys)  # three columns beside, and a little
    p, s, o = packing.triples(keys).T
    mirrored = packing.reverse + packing.keys(np.stack([p, o, s], axis=1))
    both = np.concatenate([keys, mirrored])
    order = np.argsort(both)
    assert (made.keys[: len(both)] == both[order]).all()
    assert (made.values[: len(both)] == np.tile(values, 2)[order]).all()
    assert (made.keys[len(both) :] == END).all()
