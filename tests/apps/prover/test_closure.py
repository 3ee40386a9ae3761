"""The closure engine against the bottom-up reference, at every capacity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenfold as tn
from tenfold.apps.prover import columns
from tenfold.apps.prover.closure import fixpoint as closure
from tenfold.apps.prover.closure import lookups as closure_ranks
from tenfold.apps.prover.closure.fixpoint import Closure, run
from tenfold.apps.prover.closure.joins import Packing, uses_of
from tenfold.apps.prover.closure.lookups import Ranking
from tenfold.apps.prover.errors import CapacityError
from tenfold.apps.prover.input.dataset import build
from tenfold.apps.prover.input.load import load
from tenfold.apps.prover.input.program import Program, program_of
from tenfold.apps.prover.input.queries import Query, queries, sample
from tenfold.apps.prover.input.terms import Fact
from tenfold.apps.prover.reference.bottom_up import close
from tenfold.apps.prover.reference.ranks import rank_by_height
from tenfold.apps.prover.report.ranks import Rank

from .conftest import slow, write
from .generated import programs
from .test_table import TABLE, check_mrr

spread = tn.jit(columns.spread, static="size", compile="never")
compact = tn.jit(columns.compact, static="size", compile="never")


def close_by_joins(
    program: Program, limit: int | None = None, facts: int = 1 << 10, rows: int | None = None
) -> Closure:
    """By the evaluator: generated programs have too many shapes to compile each. With a table of
    all keys and without."""
    made = closure.close_by_joins(program, limit, facts, rows, backend="evaluator")
    with patch.object(closure, "DENSE", -1):
        by_sorting = closure.close_by_joins(program, limit, facts, rows, backend="evaluator")
    assert made.keys.tobytes() == by_sorting.keys.tobytes()
    assert made.heights.tobytes() == by_sorting.heights.tobytes()
    assert made.complete == by_sorting.complete
    return by_sorting


def rank_by_lookup(
    asked: list[Query], program: Program, closed: Closure, batch: int = 256
) -> Iterator[Ranking]:
    return closure_ranks.rank_by_lookup(asked, program, closed, batch, backend="evaluator")


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.integers(1, 30))
def test_spread_gives_each_slot_its_row(counts: list[int], size: int) -> None:
    rows = np.repeat(np.arange(len(counts)), counts)[:size]
    found = spread(np.cumsum(counts), size=size)
    assert found[: len(rows)].tolist() == rows.tolist()
    assert (found < len(counts)).all()


@given(st.lists(st.booleans(), min_size=1, max_size=20), st.integers(1, 30))
def test_compact_keeps_the_order(keep: list[bool], size: int) -> None:
    places, count = compact(np.array(keep), size=size)
    assert count == sum(keep)
    assert places[: min(count, size)].tolist() == np.flatnonzero(keep)[:size].tolist()
    assert (places < len(keep)).all()


@settings(max_examples=40, deadline=None)
@given(programs(body=3), st.sampled_from([1, 2, 5, 64]), st.sampled_from([None, 0, 1, 2]))
def test_generated_programs(program: Program, room: int, limit: int | None) -> None:
    expected = close(program, limit)
    joined = close_by_joins(program, limit, facts=room, rows=room)
    assert joined.by_triple() == expected.heights
    assert joined.complete == expected.complete


def test_no_capacity_changes_a_bit() -> None:
    program = program_of(load("family:families=2"))
    first = close_by_joins(program, facts=1 << 12, rows=1 << 12)
    assert first.growths == 0
    assert first.by_triple() == close(program).heights
    for facts, rows in ((8, 1 << 10), (1 << 12, 300), (600, 257)):
        other = close_by_joins(program, facts=facts, rows=rows)
        assert other.keys.tobytes() == first.keys.tobytes()
        assert other.heights.tobytes() == first.heights.tobytes()


def test_room_grows_for_facts_and_for_rows() -> None:
    star = "\n".join(f"p(a,b{i})." for i in range(40)) + "\nq(X,Y) :- p(Z,X), p(Z,Y)."
    program = write(star)
    joined = close_by_joins(program, facts=1, rows=1)
    assert joined.growths >= 3 + 5  # from 64 facts to 2048 or more, and to 40 rows of one pair
    assert joined.by_triple() == close(program).heights
    assert len(joined.keys) == 40 + 40 * 40


def test_more_empty_bodies_than_room() -> None:
    program = write("\n".join(f"p(a,b{i}) :- ." for i in range(9)) + "\nq(X,Y) :- p(Y,X).")
    assert close_by_joins(program, facts=1, rows=1).by_triple() == close(program).heights


def test_nothing_at_all() -> None:
    assert close_by_joins(Program((), (), (), ())).by_triple() == {}
    only = write("p(a,b).")
    assert close_by_joins(only, 0).complete
    assert close_by_joins(only).by_triple() == {(0, 0, 1): 0}


def test_the_loop_is_one_node_whatever_the_rules() -> None:
    """The graph has the same size for one rule and for forty: rules are data."""

    def nodes(program: Program) -> int:
        packing, uses = Packing.of(program), uses_of(program)
        state = closure.begin(program, packing, uses, 4096, "evaluator")
        graph = run.on("evaluator").trace(state, uses, packing, np.int64(3), np.int64(9), rows=1024)
        assert [node.op for node in graph.nodes] == ["while"]
        return sum(len(scope.nodes) for scope in graph.scopes())

    program = program_of(load("family:families=2"))
    assert nodes(program) == nodes(replace(program, clauses=program.clauses[2:3]))


def test_too_many_names_are_an_error() -> None:
    names = tuple(str(i) for i in range(1 << 20))
    with pytest.raises(CapacityError, match="62 bits"):
        Packing.of(Program(tuple(map(str, range(1 << 22))), names, (), ()))


def test_keys_and_triples_are_inverse() -> None:
    packing = Packing.of(Program(("p", "q"), tuple("abcde"), (), ()))
    triples = [(1, 4, 3), (0, 0, 0), (1, 0, 4)]
    assert packing.triples(packing.keys(triples)).tolist() == [list(t) for t in triples]


# Ranks.


def test_ranks_at_every_size_of_batch() -> None:
    read = load("family:families=2")
    program = program_of(read)
    closed = close_by_joins(program)
    asked = queries(read, program)
    heights = closed.by_triple()
    expected = rank_by_height(asked, heights)
    for batch in (1, 7, len(asked), len(asked) + 5):
        few = asked if batch > 1 else asked[:5]
        found = list(rank_by_lookup(few, program, closed, batch))
        assert [r.rank for r in found] == expected[: len(few)]
        assert [r.height for r in found] == [heights.get(q.fact) for q in few]
        for query, ranked in zip(few, found, strict=True):
            proved = sum(query.corrupt(c) in heights for c in query.candidates)
            assert ranked.proved == proved
    turned = [r.rank for r in rank_by_lookup(asked[::-1], program, closed, 64)]
    assert turned[::-1] == expected


def test_ranks_among_a_sample() -> None:
    read = load("family:families=2")
    program = program_of(read)
    closed = close_by_joins(program)
    asked = sample(queries(read, program), 10, seed=0)
    found = [r.rank for r in rank_by_lookup(asked, program, closed, 32)]
    assert found == rank_by_height(asked, closed.by_triple())
    assert {r.candidates for r in found} == {10}


def test_ranks_without_candidates_or_proofs() -> None:
    program = write("p(a,b).", "q(a,b).\np(b,c).")
    closed = close_by_joins(program)
    alone = Query((0, 0, 1), "tail", frozenset(), frozenset({1}))
    unproved = Query((1, 0, 1), "tail", frozenset({0, 1, 2}), frozenset({1}))
    found = list(rank_by_lookup([alone, unproved], program, closed))
    assert [(r.rank.better, r.rank.ties, r.rank.candidates) for r in found] == [
        (0, 0, 0),
        (0, 2, 2),
    ]
    assert [r.height for r in found] == [0, None]
    nothing = close_by_joins(Program(("p", "q"), ("a", "b", "c"), (), ()))
    assert next(rank_by_lookup([alone], program, nothing)).height is None


def test_all_tied_and_filtered_by_every_split() -> None:
    """Candidates that are known only in valid or test are no candidates; the rest all tie."""
    facts = [Fact("p", "a", name) for name in "bcd"]
    made = build("d", facts[:1], facts[1:2], facts[2:], (), {"d": tuple("abcdef")})
    program = program_of(made)
    closed = close_by_joins(program)
    asked = queries(made, program, ["tail"])
    (ranked,) = rank_by_lookup(asked, program, closed)
    assert ranked.rank == Rank(0, 3, 3)  # a, e, f: the query itself has no proof either
    assert [ranked.rank] == rank_by_height(asked, closed.by_triple())
    assert ranked.height is None


# Compiled.


def test_the_compiled_engine_gives_the_evaluators_bits() -> None:
    read = load("family:families=2")
    program = program_of(read)
    ours, theirs = closure.close_by_joins(program), close_by_joins(program)
    assert ours.keys.tobytes() == theirs.keys.tobytes()
    assert ours.heights.tobytes() == theirs.heights.tobytes()
    assert (ours.complete, ours.growths) == (theirs.complete, theirs.growths)
    asked = queries(read, program)
    assert list(closure_ranks.rank_by_lookup(asked, program, ours, 64)) == list(
        rank_by_lookup(asked, program, theirs, 64)
    )


@pytest.mark.parametrize(
    "row",
    [*TABLE[:4], pytest.param(TABLE[4], marks=slow)],
    ids=[row[0] for row in TABLE],
)
def test_exact_values(data: Path, row: tuple[str, int, tuple[str, ...], int, tuple, tuple]) -> None:
    name, limit, modes, provable, by_height, binary = row
    read = load(str(data / name))
    program = program_of(read)
    closed = closure.close_by_joins(program, limit, facts=1 << (18 if name == "kinship" else 15))
    asked = queries(read, program, modes)
    ranked = list(closure_ranks.rank_by_lookup(asked, program, closed))
    assert sum(r.height is not None for r in ranked) == provable * len(modes)
    check_mrr([r.rank for r in ranked], by_height)
    flat = replace(closed, heights=np.zeros_like(closed.heights))
    check_mrr([r.rank for r in closure_ranks.rank_by_lookup(asked, program, flat)], binary)
    if name == "family":
        assert closed.complete
        assert (len(closed.keys), int(closed.heights.max())) == (26422, 3)
