"""Weights of rules: what they have to be, and what is odd about them.

A weight is a confidence: above 0, and 1 at most. Nothing is made to fit: what is no confidence is
an error with its line, as percentages are.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.notice import Notice
from tenfold.apps.prover.input.terms import Atom, Rule, Variable


def check_weights(rules: Sequence[Rule]) -> list[Notice]:
    """An error for the first weight that is no confidence; notices for what is odd.

    >>> from tenfold.apps.prover.input.read_rules import parse_rules
    >>> made, _ = parse_rules("a:1:p(x,y) -> q(x,y)", "rules.txt")
    >>> print(*check_weights(made))
    every rule weighs 1, so weights tell no proof from another
    """
    for rule in rules:
        if not 0 < rule.weight <= 1:
            raise InputError(
                f"the weight {rule.weight:g} of {rule} is no confidence: {_fault(rule.weight)}",
                where=rule.where,
                fix="give one in (0, 1]: divide percentages by 100"
                if rule.weight > 1
                else "leave the rule out, or give a confidence above 0 and at most 1",
            )
    notices = _doubled(rules)
    if rules and all(rule.weight == 1 for rule in rules):
        message = "every rule weighs 1, so weights tell no proof from another"
        notices.append(Notice("weights", message))
    return notices


def _fault(weight: float) -> str:
    return "above 1" if weight > 1 else "0 or less" if weight <= 0 else "not a number"


def _doubled(rules: Sequence[Rule]) -> list[Notice]:
    """A notice for each rule that is another one but for its weight and its variables' names."""
    first: dict[object, Rule] = {}
    notices = []
    for rule in rules:
        same = first.setdefault(_shape(rule), rule)
        if same is not rule:
            message = (
                f"the rule {rule} stands twice and counts once, with its first weight "
                f"{same.weight:g} (at {same.where or 'a rule before'}), not {rule.weight:g}"
            )
            notices.append(Notice("duplicate", message, rule.where))
    return notices


def _shape(rule: Rule) -> object:
    """A rule with its variables numbered in order of appearance."""
    names: dict[Variable, int] = {}

    def atom(one: Atom) -> tuple[object, ...]:
        terms = (names.setdefault(t, len(names)) if isinstance(t, Variable) else t for t in one[1:])
        return (one.predicate, *terms)

    return atom(rule.head), tuple(map(atom, rule.body))
