"""Rules of AnyBURL and AMIE, as their files hold them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.names import Names
from tenfold.apps.prover.input.notice import Notice
from tenfold.apps.prover.input.read_folder import read_folder
from tenfold.apps.prover.input.read_rules import parse_rules
from tenfold.apps.prover.input.rule_source import RuleSource
from tenfold.apps.prover.input.terms import Rule, Variable

ANYBURL = """\
237\t16\t0.0675\tmember_of(Haiti,Y) <= member_of(A,Y)
14\t10\t0.7142857142857143\tmember_of(Haiti,Y) <= member_of(Uruguay,Y)
20\t10\t0.5\tspeaks(X,Y) <= lives_in(X,A), official(A,Y)
9\t9\t1.0\tp(X,Y) <= q(A,X), q(A,B), r(Y,B)
4\t2\t5.0E-1\tloves(X,X) <= vain(X,yes)
"""

AMIE = """\
Assuming 8 as type relation
Loading files...
Rule\tHead Coverage\tStd Confidence\tPCA Confidence\tPositive Examples\tBody size\tPCA Body size\t\
Functional variable
?a  <isMarriedTo>  ?b   => ?b  <isMarriedTo>  ?a\t0.9\t0.8\t0.95\t800\t1000\t842\t?a
?h  <hasChild>  ?a  ?h  <isMarriedTo>  ?b   => ?b  <hasChild>  ?a\t0.1\t0.25\t0.5\t10\t40\t20\t?a
?a  <livesIn>  <United States>   => ?a  <speaks>  <english>\t0.1\t0.75\t1.0\t3\t4\t3\t?a
3 rules mined.
"""


def read(
    text: str, names: Names | None = None, confidence: str = "std"
) -> tuple[tuple[Rule, ...], tuple[Notice, ...]]:
    return parse_rules(text, "rules.txt", (), names, confidence)


def test_anyburl() -> None:
    rules, notices = read(ANYBURL)
    assert [str(rule) for rule in rules] == [
        "member_of(Haiti,Y) :- member_of(A,Y).",
        "member_of(Haiti,Y) :- member_of(Uruguay,Y).",
        "speaks(X,Y) :- lives_in(X,A), official(A,Y).",
        "p(X,Y) :- q(A,X), q(A,B), r(Y,B).",
        "loves(X,X) :- vain(X,yes).",
    ]
    assert [rule.weight for rule in rules] == [0.0675, 0.7142857142857143, 0.5, 1.0, 0.5]
    assert [(rule.name, rule.where) for rule in rules][2] == ("r3", "rules.txt:3")
    assert rules[0].head.subject == "Haiti"
    assert not notices


def test_anyburl_smoothed_as_it_applies_rules_itself() -> None:
    rules, _ = read(ANYBURL, confidence="smoothed")
    assert [rule.weight for rule in rules][:2] == [16 / 242, 10 / 19]


def test_anyburl_names_with_marks_are_cut_where_the_data_knows_them() -> None:
    names = Names(
        frozenset({"born (in)", "p,q", "in(side)"}),
        frozenset({"Washington,_D.C.", "Heat_(film)", "a), b", "it's", "x <=y", "<=", "new york"}),
    )
    text = (
        "9\t3\t0.4\tborn (in)(X,Washington,_D.C.) <= p,q(X,Heat_(film)), "
        "in(side)(a), b,A), p,q(A,X)"
        "\n9\t3\t0.4\tp,q(it's,Y) <= p,q(Y,x <=y), p,q(Y,new york)"
        "\n9\t3\t0.4\tp,q(<=,Y) <= p,q(Y,A)"
    )
    (first, second, third), _ = read(text, names)
    assert first.head[::2] == ("born (in)", "Washington,_D.C.")
    assert [atom.predicate for atom in first.body] == ["p,q", "in(side)", "p,q"]
    assert first.body[0].object == "Heat_(film)"
    assert first.body[1].subject == "a), b"
    assert second.head.subject == "it's"
    assert [atom.object for atom in second.body] == ["x <=y", "new york"]
    assert third.head.subject == "<="


def test_anyburl_names_that_can_be_cut_in_two_ways_are_refused() -> None:
    with pytest.raises(InputError, match=r"can be read as p \| a \| b,c or") as error:
        read("9\t3\t0.4\tp(a,b,c) <= q(A,B)")
    assert error.value.where == "rules.txt:1"


def test_anyburl_rules_of_every_entity_are_left_out_and_said() -> None:
    rules, (notice,) = read("9\t3\t0.1\tp(X,c) <= \n9\t3\t0.1\tp(c,Y) <=\n9\t3\t0.2\tp(a,b) <= ")
    assert [str(rule) for rule in rules] == ["p(a,b)."]
    assert (notice.kind, notice.where) == ("left-out", "rules.txt:1")
    assert "2 rules with an empty body" in str(notice)


def test_anyburl_writes_me_myself_i_for_the_other_argument() -> None:
    text = (
        "9\t3\t0.1\tp(X,me_myself_i) <= q(X,A)\n"
        "9\t3\t0.1\tp(me_myself_i,Y) <= q(A,Y)\n"
        "9\t3\t0.1\tp(X,c) <= q(X,me_myself_i)"
    )
    rules, _ = read(text)
    assert [str(rule) for rule in rules] == [
        "p(X,X) :- q(X,A).",
        "p(Y,Y) :- q(A,Y).",
        "p(X,c) :- q(X,X).",
    ]


def test_anyburl_letters_are_variables_even_if_they_are_entities_which_is_said() -> None:
    names = Names(frozenset({"p"}), frozenset({"A", "Xx", "b"}))
    (rule,), (notice,) = read("9\t3\t0.1\tp(X,b) <= p(X,A),p(A,b)", names)
    assert rule.body[0].variables == {Variable("X"), Variable("A")}
    assert (notice.kind, str(notice)[:15]) == ("constant", "A is a variable")


def test_amie() -> None:
    rules, (notice,) = read(AMIE)
    assert [str(rule) for rule in rules] == [
        "isMarriedTo(?b,?a) :- isMarriedTo(?a,?b).",
        "hasChild(?b,?a) :- hasChild(?h,?a), isMarriedTo(?h,?b).",
        "speaks(?a,english) :- livesIn(?a,United States).",
    ]
    assert [rule.weight for rule in rules] == [0.8, 0.25, 0.75]
    assert (notice.kind, notice.where) == ("left-out", "rules.txt:1")
    assert "3 lines that are no rules" in str(notice)
    assert [rule.weight for rule in read(AMIE, confidence="pca")[0]] == [0.95, 0.5, 1.0]
    assert [r.weight for r in read(AMIE, confidence="smoothed")[0]] == [800 / 1005, 10 / 45, 3 / 9]


def test_amie_columns_in_another_order_and_without_a_header() -> None:
    header = "Rule\tPca Confidence\tSupport\tHead Coverage\tStandard Confidence\tBody Size\n"
    line = "?a <p> ?b => ?a <q> ?b\t0.5\t1\t0.2\t0.25\t4"
    (rule,), _ = read(header + line)
    assert (str(rule), rule.weight) == ("q(?a,?b) :- p(?a,?b).", 0.25)
    assert read(header + line, confidence="pca")[0][0].weight == 0.5
    (bare,), _ = read("?a  p  ?b   => ?a  q  ?b\t0.2\t0.25\t0.5\t1\t4\t2\t?a\t0.0\t0.0\t0.0")
    assert (bare.weight, bare.body[0].predicate) == (0.25, "p")


def test_amie_keeps_brackets_that_the_data_has() -> None:
    names = Names(frozenset({"<p>"}), frozenset({"<c>"}))
    (rule,), _ = read("?a  <p>  <c>   => ?a  <q>  <d>\t0.2\t0.25\t0.5\t1\t4", names)
    assert rule.body[0][::2] == ("<p>", "<c>")
    assert rule.head[::2] == ("q", "d")


def test_amie_written_as_datalog() -> None:
    (rule,), _ = read("q(?a,?b) <= p(?a,?c), p(?c,?b)\t0.2\t0.25\t0.5\t1\t4")
    assert (str(rule), rule.weight) == ("q(?a,?b) :- p(?a,?c), p(?c,?b).", 0.25)


def test_a_folder_takes_a_rule_miners_file(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a\tmember_of\tUruguay\n")
    (tmp_path / "test.txt").write_text("a\tmember_of\tHaiti\n")
    mined = tmp_path / "anyburl-100"
    mined.write_text("14\t10\t0.7\tmember_of(X,Haiti) <= member_of(X,Uruguay)\n")
    (rule,) = read_folder(tmp_path, RuleSource(mined)).rules
    assert rule.weight == 0.7


BAD = {
    "decimal comma": ("9\t3\t0,33\tp(X,Y) <= q(X,Y)", "0,33 has a decimal comma"),
    "decimal comma, AMIE": (
        "?a  <p>  ?b   => ?a  <q>  ?b\t0,2\t0,25\t0,5\t1\t4",
        "0,25 has a decimal comma",
    ),
    "decimal comma, arrow": ("r:0,5:p(x,y) -> q(x,y)", "0,5 has a decimal comma"),
    "weight above 1": ("9\t3\t33\tp(X,Y) <= q(X,Y)", r"33 is not in \(0, 1\]"),
    "weight 0": ("9\t0\t0.0\tp(X,Y) <= q(X,Y)", r"0.0 is not in \(0, 1\]"),
    "weight below 0": ("9\t3\t-0.1\tp(X,Y) <= q(X,Y)", r"-0.1 is not in \(0, 1\]"),
    "weight NaN": ("9\t3\tNaN\tp(X,Y) <= q(X,Y)", "the number NaN"),
    "weight infinite": ("9\t3\tinf\tp(X,Y) <= q(X,Y)", "the number inf"),
    "weight no number": ("9\t3\thigh\tp(X,Y) <= q(X,Y)", "'high' where a number should be"),
    "negative support": ("9\t-3\t0.3\tp(X,Y) <= q(X,Y)", "a count of -3"),
    "support in parts": ("9\t2.5\t0.3\tp(X,Y) <= q(X,Y)", "a count of 2.5"),
    "more right than made": ("3\t9\t0.3\tp(X,Y) <= q(X,Y)", "9 right predictions of 3"),
    "too few columns": ("9\t3\t0.3\tp(X,Y) <= q(X,Y)\n9\t0.3\tp(X,Y) <= q(X,Y)", "3 fields"),
    "cut short": ("9\t3\t0.3\tp(X,Y) <= q(X,Y)\n9\t3\t0.3\tp(X,Y", "4 fields"),
    "cut short in an atom": ("9\t3\t0.3\tp(X,Y) <= q(X", r"q\(X is no atom"),
    "arity": ("9\t3\t0.3\tp(X) <= q(X,Y)", r"p\(X\) is no atom"),
    "two heads": ("9\t3\t0.3\tp(X,Y), p(Y,X) <= q(X,Y)", "2 heads"),
    "unsafe": ("9\t3\t0.3\tp(X,Y) <= q(X,A)", "unsafe: Y"),
    "AMIE cut short": ("?a  <p>  ?b   => ?a  <q>", "2 names, not three for each atom"),
    "AMIE without an arrow": (
        "?a  <p>  ?b   => ?a  <q>  ?b\t1\t1\t1\t1\t1\n?a  <p>  ?b",
        "0 arrows",
    ),
    "AMIE without numbers": ("?a  <p>  ?b   => ?a  <q>  ?b", "no standard confidence"),
    "AMIE with !=": (
        "?a  <p>  ?b  ?a!=?b   => ?a  <q>  ?b\t.1\t.5\t.5\t1\t2",
        "!=, which the prover has not",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD.keys())
def test_what_is_wrong_is_said_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        read(f"% mined\n{text}\n")
    assert error.value.where == f"rules.txt:{text.count(chr(10)) + 2}"
    assert error.value.fix


def test_a_confidence_that_a_file_has_not_is_refused() -> None:
    for text in (ANYBURL, "r:1:p(x,y) -> q(x,y)"):
        with pytest.raises(InputError, match=r"PCA|--confidence pca") as error:
            read(text, confidence="pca")
        assert error.value.where == "rules.txt:1"


def test_weights_that_are_no_confidences_are_said() -> None:
    rules, (notice,) = read("r:90.7:p(x,y) -> q(x,y)\ns:-1:p(x,y) -> q(y,x)\nt:1:q(x,y) -> p(x,y)")
    assert [rule.weight for rule in rules] == [90.7, -1.0, 1.0]
    assert (notice.kind, notice.where) == ("weight", "rules.txt:1")
    assert "2 weights" in str(notice)


def test_an_id_that_names_two_rules_is_said() -> None:
    rules, (notice,) = read("r:1:p(x,y) -> q(x,y)\nr:1:p(x,y) -> q(y,x)")
    assert len(rules) == 2
    assert (notice.kind, notice.where) == ("duplicate", "rules.txt:2")
    assert "the id r names another rule" in str(notice)
