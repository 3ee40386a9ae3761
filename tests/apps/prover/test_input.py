"""Facts, rules, domains and splits: what is read, and what is said of what can't be."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from tenfold import TenfoldError
from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.dataset import build
from tenfold.apps.prover.input.load import load
from tenfold.apps.prover.input.names import Names
from tenfold.apps.prover.input.program import program, program_of
from tenfold.apps.prover.input.queries import queries, sample
from tenfold.apps.prover.input.read_facts import parse_facts
from tenfold.apps.prover.input.read_folder import parse_domains, read_folder
from tenfold.apps.prover.input.read_rules import parse_rules
from tenfold.apps.prover.input.terms import Fact, Variable
from tenfold.apps.prover.reference.bottom_up import close


def one_fact(line: str, *, tabs: bool = False) -> Fact:
    facts, notices = parse_facts(line, "f", tabs=tabs)
    assert not notices
    return next(iter(facts))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("p(a,b).", Fact("p", "a", "b")),
        ("  p( a , b )", Fact("p", "a", "b")),
        ("film.actor(/m/01,a.b.c).", Fact("film.actor", "/m/01", "a.b.c")),
        ("aunt(5,76).", Fact("aunt", "5", "76")),
        ("p('new york',\"it's\").", Fact("p", "new york", "it's")),
        ("p('it''s','a,(b)').", Fact("p", "it's", "a,(b)")),
        ("p(Upper,lower).", Fact("p", "Upper", "lower")),
        ("p(a.,b).", Fact("p", "a.", "b")),
    ],
)
def test_facts_in_parentheses(line: str, expected: Fact) -> None:
    assert one_fact(line) == expected


def test_facts_between_tabs() -> None:
    assert one_fact("new york\tlocated in\t1.5", tabs=True) == Fact("located in", "new york", "1.5")


def test_a_text_file_may_hold_tabs(tmp_path: Path) -> None:
    path = folder(tmp_path, train="/m/01\t/film/actor\t/m/02\n/m/03\t/film/actor\t/m/01\n")
    assert read_folder(path).train[1] == Fact("/film/actor", "/m/03", "/m/01")
    (path / "train.txt").write_text("a\tp\tb\np(a,b).\n")
    with pytest.raises(InputError, match="1 fields") as error:
        read_folder(path)
    assert error.value.where == "train.txt:2"


def test_marks_of_windows_are_no_part_of_names(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "train.txt").write_bytes("\ufeffp(a,b).\r\np(c,d).\r\n".encode())
    (path / "valid.txt").write_bytes(b"")
    assert read_folder(path).train == (Fact("p", "a", "b"), Fact("p", "c", "d"))


def test_only_a_newline_ends_a_line() -> None:
    odd = "a\u2028b"
    facts, _ = parse_facts(f"{odd}\tp\tb\nc\tp\td", "f", tabs=True)
    assert facts == {Fact("p", odd, "b"): "f:1", Fact("p", "c", "d"): "f:2"}


def test_comments_and_empty_lines_are_passed_over() -> None:
    assert parse_facts("% said\n\n p(a,b).\n", "f")[0] == {Fact("p", "a", "b"): "f:3"}


@pytest.mark.parametrize(
    ("text", "tabs", "message", "where"),
    [
        ("p(a,b).\nq(a).", False, "q has 1 arguments", "f:2"),
        ("p(a,b,c).", False, "p has 3 arguments", "f:1"),
        ("p(a,b). q(b,c).", False, "comma", "f:1"),
        ("p(a,b), q(b,c).", False, "2 atoms", "f:1"),
        ("p(new york,b).", False, "after the argument 'new'", "f:1"),
        ("p(a,b", False, "after the argument 'b'", "f:1"),
        ("p(,b).", False, "argument of 'p' is missing", "f:1"),
        ("p", False, "no '('", "f:1"),
        ("(a,b).", False, "no predicate", "f:1"),
        ("p('a,b).", False, "quote", "f:1"),
        ("a\tp", True, "2 fields", "f:1"),
        ("a\tp\tb\nx\ty\tz\tw", True, "4 fields", "f:2"),
    ],
)
def test_wrong_facts_say_where(text: str, tabs: bool, message: str, where: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")) as error:
        parse_facts(text, "f", tabs=tabs)
    assert error.value.where == where
    assert error.value.fix
    assert isinstance(error.value, TenfoldError)
    assert isinstance(error.value, ValueError)


def test_a_fact_that_stands_twice_is_said_and_kept_once() -> None:
    facts, (notice,) = parse_facts("p(a,b).\nq(a,b).\np(a,b).", "f")
    assert len(facts) == 2
    assert (notice.kind, notice.where) == ("duplicate", "f:3")


def test_in_arrow_rules_names_that_the_data_has_not_are_variables() -> None:
    (rule,), notices = parse_rules("r0:0.5:p(X,h), q(h,where) -> s(X,where)", "r")
    assert (rule.name, rule.weight, rule.where) == ("r0", 0.5, "r:1")
    assert rule.head == ("s", Variable("X"), Variable("where"))
    assert rule.body[0].object == rule.body[1].subject == Variable("h")
    assert not notices


def test_constants_of_arrow_rules_are_quoted_or_declared() -> None:
    (rule,), _ = parse_rules("r:1:p(x,'asia'), q(x,paris) -> s(x,asia)", "r", ["paris", "asia"])
    assert rule.body[0].object == "asia"
    assert rule.body[1].object == "paris"
    assert rule.head.object == "asia"


def test_constants_of_arrow_rules_are_found_among_the_entities() -> None:
    names = Names(frozenset(), frozenset({"usa", "x", "b2", "Überall", "7"}))
    text = "r:1:p(x,usa), q(x,b2), q(x,7), q(x,?usa) -> s(x,Überall)\nt:1:p(usa,y) -> s(usa,y)"
    (rule, other), notices = parse_rules(text, "r", (), names)
    assert [atom.object for atom in rule.body] == ["usa", Variable("b2"), "7", Variable("?usa")]
    assert rule.head == ("s", Variable("x"), "Überall")
    assert other.head.subject == "usa"
    said = [(notice.kind, notice.where, str(notice).split(" is ")[0]) for notice in notices]
    assert said == [
        ("constant", "r:1", "Überall"),
        ("constant", "r:1", "usa"),
        ("constant", "r:1", "7"),
        ("constant", "r:1", "x"),
        ("constant", "r:1", "b2"),
    ]
    assert "'x' is a constant" in str(notices[3])


def test_a_letter_that_is_declared_or_quoted_is_a_constant_whatever_the_data() -> None:
    names = Names(frozenset(), frozenset({"x", "y"}))
    (rule,), notices = parse_rules("r:1:p(z,x), p(z,'y') -> s(z,x)", "r", ["x"], names)
    assert [atom.object for atom in rule.body] == ["x", "y"]
    assert not notices


def test_a_name_that_can_be_no_variable_is_a_constant() -> None:
    (rule,), _ = parse_rules("r:1:p(x,/m/01), p(x,12) -> s(x,x)", "r")
    assert [atom.object for atom in rule.body] == ["/m/01", "12"]


def test_constants_are_looked_up_in_every_split_and_domain(tmp_path: Path) -> None:
    rules = "r:1:p(x,bb), p(x,cc), p(x,dd), p(x,ee) -> p(x,nowhere)"
    path = folder(tmp_path, train="p(aa,bb).", valid="p(aa,cc).", test="p(aa,dd).", rules=rules)
    (path / "domain2constants.txt").write_text("d aa bb cc dd ee")
    with pytest.raises(InputError, match="unsafe: nowhere"):
        read_folder(path)
    (path / "rules.txt").write_text(rules.replace("nowhere", "aa"))
    (rule,) = read_folder(path).rules
    assert [atom.object for atom in rule.body] == ["bb", "cc", "dd", "ee"]


def test_in_prolog_rules_capitals_are_variables() -> None:
    rules, _ = parse_rules("s(X,a.b/c) :- p(X,_Y), q(_,'Z'), q(_,1).\ns(a,b).\ns(a,c) :- .", "r")
    first, second, third = rules
    assert first.head.object == "a.b/c"
    assert first.body[0].object == Variable("_Y")
    assert first.body[1].object == "Z"
    assert first.body[1].subject != first.body[2].subject
    assert first.body[2].object == "1"
    assert second.body == third.body == ()


def test_predicates_with_colons_and_marks_in_quotes() -> None:
    (rule,), _ = parse_rules("r:1:rdf:type(x,'a->b:-c') -> is:a(x,x)", "r")
    assert rule.body[0].predicate == "rdf:type"
    assert rule.body[0].object == "a->b:-c"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("r:1:p(x,y) -> q(x,z)", "unsafe: z"),
        ("q(X,Y) :- p(X,a).", "unsafe: Y"),
        ("p(X,X).", "unsafe: X"),
        ("r:1: -> p(x,y)", "unsafe: x, y"),
        ("p(x,y) -> q(x,y)", "no id and weight"),
        ("r:much:p(x,y) -> q(x,y)", "'much' where a number"),
        ("r:nan:p(x,y) -> q(x,y)", "number nan"),
        ("r:1:p(x) -> q(x,x)", "p has 1 arguments"),
        ("r:1:p(x,y) -> q(x,y), q(y,x)", "2 heads"),
        ("r:1:p(x,y) ->", "0 heads"),
        ("p(X,Y) q(X,Y)", "neither"),
        ("r:1:p(x,y) -> q(x,y) :- r(x,y).", "both"),
    ],
)
def test_wrong_rules_say_where(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        parse_rules("% first\n" + text, "r")
    assert error.value.where == "r:2"
    assert error.value.fix


def test_a_rule_that_stands_twice_is_said_and_kept_once() -> None:
    rules, (notice,) = parse_rules("r:1:p(x,y) -> q(x,y)\ns:.5:p(x,y) -> q(x,y)", "r")
    assert [rule.name for rule in rules] == ["r"]
    assert (notice.kind, notice.where) == ("duplicate", "r:2")


def test_rules_equal_up_to_renaming_are_one_clause() -> None:
    rules, _ = parse_rules("q(X,Y) :- p(X,Y).\nq(A,B) :- p(A,B).", "r")
    assert len(program([], rules).clauses) == 1


def folder(path: Path, **files: str) -> Path:
    given = {"train": "p(a,b).", "valid": "", "test": "p(b,a).", "rules": ""} | files
    for name, text in given.items():
        (path / f"{name}.txt").write_text(text)
    return path


def test_a_folder_is_read_whole(tmp_path: Path) -> None:
    made = read_folder(folder(tmp_path, rules="r:1:p(x,y) -> p(y,x)"))
    assert made.train == (Fact("p", "a", "b"),)
    assert made.test == (Fact("p", "b", "a"),)
    assert len(made.rules) == 1
    assert not made.notices


def test_dev_stands_for_valid_and_tabs_for_parentheses(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "valid.txt").unlink()
    (path / "dev.tsv").write_text("c\tp\td\n")
    assert read_folder(path).valid == (Fact("p", "c", "d"),)


def test_overlaps_and_unknown_names_are_said(tmp_path: Path) -> None:
    made = read_folder(
        folder(
            tmp_path,
            valid="p(a,b).",
            test="p(a,b).\nq(z,a).",
            rules="r:1:nothing(x,y) -> p(x,y)",
        )
    )
    kinds = [notice.kind for notice in made.notices]
    assert kinds.count("overlap") == 3
    assert kinds.count("unknown-predicate") == 2
    assert kinds.count("unknown-constant") == 1
    where = {n.kind: [m.where for m in made.notices if m.kind == n.kind] for n in made.notices}
    assert where["overlap"] == ["valid.txt:1", "test.txt:1", "test.txt:1"]
    assert where["unknown-predicate"] == ["test.txt:2", "rules.txt:1"]
    assert where["unknown-constant"] == ["test.txt:2"]


def test_a_domain_with_a_constant_that_is_nowhere_is_said(tmp_path: Path) -> None:
    path = folder(tmp_path, domain2constants="d a b typo")
    (notice,) = read_folder(path).notices
    assert notice.kind == "unknown-constant"
    assert "typo" in str(notice)


@pytest.mark.parametrize("name", ["train", "test", "rules"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    path = folder(tmp_path)
    (path / f"{name}.txt").unlink()
    with pytest.raises(InputError, match=name):
        read_folder(path)


def test_a_missing_valid_file_is_said(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "valid.txt").unlink()
    made = read_folder(path)
    assert made.valid == ()
    assert [notice.kind for notice in made.notices] == ["missing"]
    assert "has no valid" in str(made.notices[0])


def test_two_files_for_one_split_are_refused(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "train.tsv").write_text("a\tp\tb")
    with pytest.raises(InputError, match="both train"):
        read_folder(path)


def test_a_file_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "test.txt").write_bytes(b"p(\xff,b).")
    with pytest.raises(InputError, match="UTF-8"):
        read_folder(path)


def test_no_folder_and_no_pykeen_are_said() -> None:
    with pytest.raises(InputError, match="no folder"):
        load("nowhere/at/all")
    with pytest.raises(InputError, match="PyKEEN"):
        load("pykeen:no-such-data-set")


class Triples:
    """What the prover uses of PyKEEN's CoreTriplesFactory."""

    def __init__(self, labels: list[tuple[str, str, str]]) -> None:
        self.labels = np.array(labels)
        self.mapped_triples = np.arange(len(labels))

    def label_triples(self, triples: np.ndarray) -> np.ndarray:
        return self.labels[triples]


def test_data_sets_of_pykeen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By a module with PyKEEN's interface, which is too heavy to install for a test."""

    def get_dataset(*, dataset: str) -> SimpleNamespace:
        if dataset != "nations":
            raise ValueError(f"Invalid dataset name: {dataset}")
        return SimpleNamespace(
            training=Triples([("brazil", "accuse", "uk"), ("uk", "aid", "china")]),
            validation=Triples([("uk", "accuse", "brazil")]),
            testing=Triples([("china", "aid", "uk")]),
        )

    module = ModuleType("pykeen.datasets")
    module.get_dataset = get_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pykeen", ModuleType("pykeen"))
    monkeypatch.setitem(sys.modules, "pykeen.datasets", module)
    rules = tmp_path / "rules.txt"
    rules.write_text("r:1:aid(x,y) -> aid(y,x)\n")
    made = load("pykeen:nations", rules)
    assert made.train == (Fact("accuse", "brazil", "uk"), Fact("aid", "uk", "china"))
    assert made.valid == (Fact("accuse", "uk", "brazil"),)
    assert close(program_of(made)).heights[program_of(made).number(made.test[0])] == 1
    bare = load("pykeen:nations")
    assert bare.rules == ()
    assert next(notice.kind for notice in bare.notices) == "missing"
    assert load("pykeen:nations", mine=3).rules == ()  # nothing is borne out twice
    with pytest.raises(InputError, match="no data set 'notions'"):
        load("pykeen:notions")


def test_pykeen_itself() -> None:
    pytest.importorskip("pykeen", reason="PyKEEN is not installed")
    made = load("pykeen:nations")
    assert (len(made.train), len(made.valid), len(made.test)) == (1592, 199, 201)
    assert Fact("blockpositionindex", "brazil", "china") in made.train


def test_domains() -> None:
    assert parse_domains("r a b a\n\nc x", "d") == {"r": ("a", "b"), "c": ("x",)}
    with pytest.raises(InputError, match="twice") as error:
        parse_domains("r a\nr b", "d")
    assert error.value.where == "d:2"
    with pytest.raises(InputError, match="domains r and c"):
        parse_domains("r a\nc a", "d")


def facts(text: str) -> tuple[Fact, ...]:
    return tuple(parse_facts(text, "f")[0])


def test_candidates_come_from_the_domain_of_the_argument_replaced() -> None:
    domains = {"regions": ("asia", "europe", "africa"), "countries": ("japan", "chad")}
    made = build("d", facts("in(chad,africa)."), (), facts("in(japan,asia)."), (), domains)
    known = program_of(made)
    head, tail = queries(made, known)
    assert [known.constants[c] for c in tail.candidates] == ["africa", "europe"]
    assert [known.constants[c] for c in head.candidates] == ["chad"]


def test_a_constant_without_a_domain_is_an_error() -> None:
    made = build("d", (), (), facts("in(japan,asia)."), (), {"regions": ("asia",)})
    with pytest.raises(InputError, match=r"japan of in\(japan,asia\) is in no domain"):
        queries(made, program_of(made))
    assert len(queries(made, program_of(made), ["tail"])) == 1  # what is not replaced needs none


def test_a_query_without_a_domain_says_its_line(tmp_path: Path) -> None:
    made = read_folder(folder(tmp_path, test="p(b,a).\np(a,z).", domain2constants="d a b"))
    with pytest.raises(InputError, match="z of p") as error:
        queries(made, program_of(made))
    assert error.value.where == "test.txt:2"


def test_a_constant_of_a_rule_that_no_fact_has_is_said(tmp_path: Path) -> None:
    rules = "q(X,new) :- p(X,b).\np(X,X) :- q(X,new), p(X,typo)."
    (notice,) = read_folder(folder(tmp_path, rules=rules)).notices
    assert (notice.kind, notice.where) == ("unknown-constant", "rules.txt:2")
    assert "typo is in no fact" in str(notice)


def test_corruptions_known_in_any_split_are_filtered() -> None:
    made = build("d", facts("p(a,b)."), facts("p(a,c)."), facts("p(a,d).\np(e,e)."), ())
    known = program_of(made)
    tail = queries(made, known, ["tail"])[0]
    assert [known.constants[c] for c in tail.candidates] == ["a", "e"]
    head = queries(made, known, ["head"])[0]
    assert [known.constants[c] for c in head.candidates] == ["b", "c", "d", "e"]


def test_modes_are_never_mixed() -> None:
    made = build("d", facts("p(a,b)."), (), facts("p(b,a)."), ())
    known = program_of(made)
    assert [q.mode for q in queries(made, known)] == ["head", "tail"]
    with pytest.raises(InputError, match="both"):
        queries(made, known, ["both"])


def test_a_sample_depends_on_seed_and_query_alone() -> None:
    made = load("family:families=3")
    known = program_of(made)
    asked = queries(made, known)
    drawn = sample(asked, 5, seed=1)
    assert sample(asked[::-1], 5, seed=1)[::-1] == drawn
    assert sample(asked, 5, seed=2) != drawn
    assert all(q.pool <= set(a.candidates) for q, a in zip(drawn, asked, strict=True))
    assert {len(q.pool) for q in drawn} == {5}
    assert [q.candidates for q in sample(asked[:2], 10**6, 0)] == [q.candidates for q in asked[:2]]


def test_unknown_names_in_a_query_are_an_error() -> None:
    made = program(facts("p(a,b)."), ())
    for wrong in ("p(a,z).", "q(a,b)."):
        with pytest.raises(InputError, match="not known"):
            made.number(facts(wrong)[0])
