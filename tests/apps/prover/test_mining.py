"""Mined rules against counts by brute force, and what a run makes of them."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tenfold.apps.prover.command import app
from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.load import load
from tenfold.apps.prover.input.names import names_of
from tenfold.apps.prover.input.read_rules import read_rules
from tenfold.apps.prover.input.terms import Atom, Fact, Rule
from tenfold.apps.prover.mining.mine import A, B, X, Y, mine, write_rules
from tenfold.apps.prover.mining.paths import Walks

ALL = 10**9


def drawn(seed: int, entities: int = 5, relations: int = 2, facts: int = 14) -> list[Fact]:
    draw = random.Random(seed)
    places = list(product(range(relations), range(entities), range(entities)))
    return [Fact(f"p{p}", f"e{s}", f"e{o}") for p, s, o in draw.sample(places, facts)]


def by_brute_force(facts: list[Fact]) -> dict[tuple[Atom, tuple[Atom, ...]], tuple[int, int]]:
    """Every rule with two successes: right predictions, and all of them."""
    known = set(facts)
    relations = sorted({f.predicate for f in facts})
    entities = sorted({e for f in facts for e in f[1:]})
    steps = [(relation, back) for relation in relations for back in (False, True)]
    made: dict[tuple[Atom, tuple[Atom, ...]], tuple[int, int]] = {}

    def holds(step: tuple[str, bool], source: str, target: str) -> bool:
        relation, back = step
        return (Fact(relation, target, source) if back else Fact(relation, source, target)) in known

    def atom(step: tuple[str, bool], source: object, target: object) -> Atom:
        ends = (target, source) if step[1] else (source, target)
        return Atom(step[0], *ends)  # type: ignore[arg-type]

    for length in (1, 2, 3):
        for body in product(steps, repeat=length):
            pairs = set()
            for walk in product(entities, repeat=length + 1):
                inner = walk[1:-1]
                simple = len(set(inner)) == len(inner) and not {walk[0], walk[-1]} & set(inner)
                simple = simple and (length > 1 or walk[0] != walk[1])
                if simple and all(map(holds, body, walk, walk[1:])):
                    pairs.add((walk[0], walk[-1]))
            places = [X, *(A, B)[: length - 1], Y]
            for relation in relations:
                head = Atom(relation, X, Y)
                atoms = tuple(map(atom, body, places, places[1:]))
                right = sum(Fact(relation, *pair) in known for pair in pairs)
                if right >= 2 and atoms != (head,):
                    made[head, atoms] = right, len(pairs)
    for head_step, body_step in product(steps, steps):
        for own, other in product(entities, [*entities, None]):
            if (head_step, own) == (body_step, other):
                continue
            reached = [
                entity
                for entity in entities
                if any(
                    holds(body_step, entity, end)
                    for end in ([other] if other else entities)
                    if other or (body_step, end) != (head_step, own)
                )
            ]
            right = sum(holds(head_step, entity, own) for entity in reached)
            if right >= 2:
                rule = atom(head_step, X, own), (atom(body_step, X, other or A),)
                made[rule] = right, len(reached)
    return made


@pytest.mark.parametrize("seed", range(6))
def test_counts_are_those_of_brute_force(seed: int) -> None:
    facts = drawn(seed)
    made = mine(facts, ALL)
    counted = dict(zip((rule.clause for rule in made.rules), made.supports, strict=True))
    assert counted == by_brute_force(facts)
    assert len(counted) == len(made.rules) > 50


def test_weights_are_smoothed_by_length_and_fall() -> None:
    made = mine(drawn(1), ALL)
    for rule, (right, all_made) in zip(made.rules, made.supports, strict=True):
        assert rule.weight == right / (all_made + 10 * len(rule.body))
    weights = [rule.weight for rule in made.rules]
    assert weights == sorted(weights, reverse=True)
    assert all(0.0 < weight <= 1.0 for weight in weights)


@pytest.mark.parametrize("count", [1, 7, 40])
def test_relations_share_the_rules_by_their_facts(count: int) -> None:
    facts = drawn(2, relations=3, facts=30)
    everything = mine(facts, ALL).rules
    number = {f"p{i}": sum(f.predicate == f"p{i}" for f in facts) for i in range(3)}
    wanted: list[tuple[float, int, Rule]] = []
    for name, facts_of in number.items():
        own = [rule for rule in everything if rule.head.predicate == name]
        wanted += [(i / facts_of, everything.index(rule), rule) for i, rule in enumerate(own)]
    best = sorted(wanted, key=lambda one: one[:2])[:count]
    expected = [rule.clause for _, _, rule in sorted(best, key=lambda one: one[1])]
    assert [rule.clause for rule in mine(facts, count).rules] == expected


def test_the_order_of_facts_changes_nothing() -> None:
    facts = drawn(3, facts=20)
    made = mine(facts, 50)
    assert mine(facts[::-1], 50) == made
    assert mine([*facts, *facts], 50) == made


def test_few_walks_are_sampled_and_said() -> None:
    facts = drawn(4, entities=30, relations=3, facts=400)
    assert [notice.kind for notice in mine(facts, 500).notices] == ["mined"]
    few = Walks(of_body=200, of_long=100, in_all=1000)
    some = mine(facts, 500, few)
    assert few.sampled
    assert few.left_out
    assert [str(notice).split(" bodies")[0] for notice in some.notices[1:]] == [
        f"{few.sampled}",
        f"{few.left_out}",
    ]
    assert some.rules == mine(facts, 500, Walks(of_body=200, of_long=100, in_all=1000)).rules
    whole = mine(facts, ALL)
    exact = dict(zip((rule.clause for rule in whole.rules), whole.supports, strict=True))
    counted = list(zip(some.rules, some.supports, strict=True))
    assert any(counts != exact[rule.clause] for rule, counts in counted)
    for rule, (right, made) in counted:
        assert right <= made
        assert right <= exact[rule.clause][0]
        assert made <= exact[rule.clause][1]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    odd = {"e0": "new york", "e1": "it's", "e2": "a,(b)", "e3": "x", "p0": "p -> q", "p1": "r:s"}
    facts = [Fact(*(odd.get(name, name) for name in fact)) for fact in drawn(5, facts=20)]
    made = mine(facts, 200)
    path = tmp_path / "mined.txt"
    write_rules(path, made)
    rules, notices = read_rules(path, (), names_of(facts))
    assert [(r.clause, r.name, r.weight) for r in rules] == [
        (r.clause, r.name, r.weight) for r in made.rules
    ]
    assert {notice.kind for notice in notices} <= {"constant"}  # x is an entity, too
    assert not list(tmp_path.glob("*.partial"))


def test_a_name_with_a_line_break_is_not_written(tmp_path: Path) -> None:
    facts = [Fact("p", f"e{i}", "a\nb") for i in range(5)]
    facts += [Fact("q", f"e{i}", "c") for i in range(5)]
    with pytest.raises(InputError, match="line break"):
        write_rules(tmp_path / "mined.txt", mine(facts, 100))


def test_no_rules_where_nothing_repeats() -> None:
    assert mine([], 10).rules == ()
    assert mine([Fact("p", "a", "b")], 10).rules == ()
    assert mine([Fact("p", "a", "a"), Fact("q", "a", "a")], 10).rules == ()


def test_nothing_to_mine_from_is_an_error(tmp_path: Path) -> None:
    for name in ("train", "test"):
        (tmp_path / f"{name}.txt").write_text("")
    with pytest.raises(InputError, match="no facts to mine"):
        load(str(tmp_path), mine=5)


def test_a_run_with_mined_rules_and_one_with_their_file_are_alike(tmp_path: Path) -> None:
    mined, first, second = (tmp_path / name for name in ("mined.txt", "a.json", "b.json"))
    data = ["family:families=2,generations=3", "--backend", "python", "--height", "1", "--fresh"]
    ended = CliRunner().invoke(
        app, [*data, "--mine", "40", "--mine-to", str(mined), "--json", str(first)]
    )
    assert ended.exit_code == 0, ended.output
    assert sum("->" in line for line in mined.read_text().splitlines()) == 40
    ended = CliRunner().invoke(app, [*data, "--rules", str(mined), "--json", str(second)])
    assert ended.exit_code == 0, ended.output

    def figures(path: Path) -> str:
        return path.read_text().split('"notices"')[0]

    assert figures(first) == figures(second)
    assert '"proved": 0,' not in figures(first).split('"tail"')[0]
