"""Embeddings as scores and as breakers of ties, against sums written out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors_file import write_arrays

from tenfold import TenfoldError
from tenfold.apps.prover.errors import InputError, ScoreError
from tenfold.apps.prover.evaluation import evaluate
from tenfold.apps.prover.input.load import load
from tenfold.apps.prover.input.program import Program, program_of
from tenfold.apps.prover.input.queries import Query, queries
from tenfold.apps.prover.report.ranks import Rank
from tenfold.apps.prover.scores.embedding import Embedding, read_embedding
from tenfold.apps.prover.settings import Settings

SMALL = "family:families=1,generations=3"


def names_of(program: Program) -> dict[str, str]:
    return {
        "entities": json.dumps(program.constants[::-1]),  # any order: names say which is which
        "relations": json.dumps(program.predicates),
    }


def written(path: Path, program: Program, kind: str, width: int = 5) -> dict[str, Any]:
    """A file of drawn embeddings, and what is in it, by name."""
    draw = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return draw.standard_normal(shape).astype(np.float32)

    sizes = {"entities": len(program.constants), "relations": len(program.predicates)}
    tensors: dict[str, Any] = {}
    vectors: dict[str, Any] = {}
    for name, size in sizes.items():
        real = normal(size, width)
        vectors[name] = real.astype(complex)
        if kind == "distmult":
            tensors[name] = real
        else:
            imaginary = normal(size, width)
            vectors[name] = real + 1j * imaginary.astype(complex)
            if kind == "parts":
                tensors |= {f"{name}.real": real, f"{name}.imag": imaginary}
            else:
                tensors[name] = (real + 1j * imaginary).astype(np.complex64)
    write_arrays(path, tensors, names_of(program))
    return {
        "entities": dict(zip(program.constants[::-1], vectors["entities"], strict=True)),
        "relations": dict(zip(program.predicates, vectors["relations"], strict=True)),
    }


def score(vectors: dict[str, Any], fact: Any) -> float:
    """The real part of the sum of s·r·conj(o), one dimension after another."""
    s, o = vectors["entities"][fact.subject], vectors["entities"][fact.object]
    r = vectors["relations"][fact.predicate]
    return float(sum((a * b * c.conjugate()).real for a, b, c in zip(s, r, o, strict=True)))


@pytest.fixture
def asked() -> tuple[Program, list[Query]]:
    data = load(SMALL)
    program = program_of(data)
    return program, queries(data, program)


@pytest.mark.parametrize("kind", ["distmult", "complex", "parts"])
@pytest.mark.parametrize("backend", ["compiled", "evaluator", "python"])
def test_scores_and_ranks(
    tmp_path: Path, asked: tuple[Program, list[Query]], kind: str, backend: str
) -> None:
    program, some = asked
    vectors = written(tmp_path / "e.safetensors", program, kind)
    embedding = read_embedding(tmp_path / "e.safetensors", program, some, backend)
    scores = embedding.scores(some)
    run = evaluate(
        Settings(
            SMALL, score="embedding", embedding=str(tmp_path / "e.safetensors"), backend=backend
        )
    )
    for query, row, result in zip(some, scores, run.results, strict=True):
        expected = [
            score(vectors, program.name(query.corrupt(c))) for c in range(len(program.constants))
        ]
        assert np.allclose(row, expected, rtol=1e-12, atol=1e-12)
        better = sum(expected[c] > expected[query.own] + 1e-9 for c in query.candidates)
        assert result.found.rank == Rank(better, 0, len(query.candidates))
        assert (result.found.height, result.found.weight) == (None, None)
        assert not result.found.outcomes
    assert run.closed is None


@pytest.mark.parametrize(
    "engine",
    [
        {},
        {"backend": "python"},
        {"engine": "rollout", "steps": 4},
        {"engine": "rollout", "search": "exhaustive", "backend": "python"},
    ],
)
@pytest.mark.parametrize("kind", ["height", "weight", "binary"])
def test_ties_are_broken_and_nothing_else(
    tmp_path: Path, asked: tuple[Program, list[Query]], engine: dict[str, Any], kind: str
) -> None:
    program, _ = asked
    vectors = written(tmp_path / "e.safetensors", program, "complex")
    if kind == "weight" and "steps" in engine:
        engine = {**engine, "search": "exhaustive", "backend": "evaluator", "batch": 16}
        del engine["steps"]
    told = Settings(SMALL, score=kind, height=1, limit=6, backend="evaluator")
    told = replace(told, **engine)
    plain = evaluate(told)
    broken = evaluate(replace(told, embedding=str(tmp_path / "e.safetensors")))
    for before, after in zip(plain.results, broken.results, strict=True):
        query = before.query
        assert after.found.rank.ties == 0
        assert before.found.rank.better <= after.found.rank.better
        assert after.found.rank.better <= before.found.rank.better + before.found.rank.ties
        if before.found.rank.ties == before.found.rank.candidates:  # all tie: embeddings decide
            mine = score(vectors, program.name(query.fact))
            others = [score(vectors, program.name(query.corrupt(c))) for c in query.candidates]
            assert after.found.rank.better == sum(other > mine for other in others)


def test_equal_vectors_tie_whatever_the_rounding() -> None:
    draw = np.random.default_rng(2)
    entities = np.repeat(draw.standard_normal((3, 40)), 5, axis=0)
    everyone = frozenset(range(15))
    query = Query((0, 0, 1), "tail", everyone, frozenset({1}))
    for backend in ("compiled", "evaluator", "python"):
        embedding = Embedding(entities, draw.standard_normal((1, 40)), False, backend)
        order = embedding.order([query, query])
        assert (order[:, :5] == 0).all()
        assert len(set(order[0, 5:10].tolist())) == 1
        assert (order[0] == order[1]).all()


def test_scores_beyond_floats_are_an_error() -> None:
    entities = np.full((2, 2), 1e200)
    query = Query((0, 0, 1), "tail", frozenset({0, 1}), frozenset({1}))
    with pytest.raises(ScoreError):
        Embedding(entities, entities, False, "python").order([query])


Changed = dict[str, Any]
NAMES = {"entities": '["a", "b"]', "relations": '["p"]'}
GOOD = {"entities": np.ones((2, 3), np.float32), "relations": np.ones((1, 3), np.float32)}


@pytest.mark.parametrize(
    ("tensors", "names", "said"),
    [
        ({"entities": None}, {}, "no tensor 'entities'"),
        ({"entities": None, "entities.real": np.ones((2, 3))}, {}, "no tensor 'entities'"),
        ({}, {"relations": None}, "does not name its relations"),
        ({}, {"entities": "a, b"}, "does not name its entities"),
        ({}, {"entities": '{"a": 0}'}, "no list of names"),
        ({}, {"entities": '["a", "a"]'}, "twice"),
        ({}, {"entities": '["a"]'}, "names 1 entities and has vectors of 2"),
        ({}, {"entities": '["a", "z"]'}, "the entity 'b'"),
        ({}, {"relations": '["q"]'}, "the relation 'p'"),
        ({"entities": np.ones(2)}, {}, "the shape"),
        ({"entities": np.ones((2, 0))}, {}, "the shape"),
        ({"relations": np.ones((1, 4))}, {}, "the same width"),
        ({"relations": np.ones((1, 3), np.complex64)}, {}, "both complex"),
        ({"entities": np.full((2, 3), np.nan)}, {}, "not a number"),
        ({"entities": np.full((2, 3), np.inf)}, {}, "not a number"),
        (
            {"entities": None, "entities.real": np.ones((2, 3)), "entities.imag": np.ones((2, 2))},
            {},
            "one shape",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said(
    tmp_path: Path, tensors: Changed, names: Changed, said: str
) -> None:
    program = Program(("p",), ("a", "b"), ((0, 0, 1),), ())
    query = Query((0, 0, 1), "tail", frozenset({0, 1}), frozenset({1}))
    file = tmp_path / "e.safetensors"
    arrays = {k: v for k, v in {**GOOD, **tensors}.items() if v is not None}
    write_arrays(file, arrays, {k: v for k, v in {**NAMES, **names}.items() if v is not None})
    with pytest.raises(InputError) as raised:
        read_embedding(file, program, [query], "python")
    assert said in str(raised.value)
    assert "e.safetensors" in str(raised.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    program = Program(("p",), ("a", "b"), ((0, 0, 1),), ())
    with pytest.raises(InputError, match="No such file"):
        read_embedding(tmp_path / "nowhere", program, [], "python")
    (tmp_path / "none").write_bytes(b"no tensors")
    with pytest.raises(TenfoldError, match="safetensors"):
        read_embedding(tmp_path / "none", program, [], "python")
    write_arrays(tmp_path / "bare", GOOD)
    with pytest.raises(InputError, match="does not name"):
        read_embedding(tmp_path / "bare", program, [], "python")


def test_a_journal_knows_what_was_in_the_file(
    tmp_path: Path, asked: tuple[Program, list[Query]]
) -> None:
    program, _ = asked
    file, journal = tmp_path / "e.safetensors", tmp_path / "journal"
    written(file, program, "distmult")
    told = Settings(SMALL, score="embedding", embedding=str(file), backend="python")
    first = evaluate(told, journal=journal)
    assert evaluate(told, journal=journal).resumed == len(first.results)
    written(file, program, "complex")
    with pytest.raises(InputError, match="other settings or data"):
        evaluate(told, journal=journal)
