"""Dataset: the splits, rules and domains of one problem, by name, and what is odd about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tenfold.apps.prover.input.notice import Notice
from tenfold.apps.prover.input.terms import Fact, Rule

Places = Mapping[str, Mapping[Fact, str]]  # by split, where a fact was read


@dataclass(frozen=True, slots=True)
class Dataset:
    """What is known (train), what is asked (test), and what is only there to be filtered."""

    name: str
    train: tuple[Fact, ...]
    valid: tuple[Fact, ...]
    test: tuple[Fact, ...]
    rules: tuple[Rule, ...]
    domains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    places: Mapping[Fact, str] = field(default_factory=dict)  # where the facts of test were read

    @property
    def splits(self) -> dict[str, tuple[Fact, ...]]:
        return {"train": self.train, "valid": self.valid, "test": self.test}

    @property
    def entities(self) -> tuple[str, ...]:
        """Every constant of a fact or a domain, sorted."""
        found = {c for facts in self.splits.values() for f in facts for c in f[1:]}
        found.update(c for members in self.domains.values() for c in members)
        return tuple(sorted(found))


def build(
    name: str,
    train: Iterable[Fact],
    valid: Iterable[Fact],
    test: Iterable[Fact],
    rules: Iterable[Rule],
    domains: Mapping[str, tuple[str, ...]] | None = None,
    notices: Iterable[Notice] = (),
) -> Dataset:
    """A data set, with notices for what only shows when its parts stand side by side.

    Facts that come as a mapping have the places where they were read.

    >>> made = build("d", [Fact("p", "a", "b")], [], [Fact("q", "a", "c")], [])
    >>> for notice in made.notices: print(notice)
    the predicate q of test is in no fact of train and no rule's head: nothing proves it
    1 of the constants of test are not in train: c
    """
    lines = {
        split: facts if isinstance(facts, Mapping) else {}
        for split, facts in (("train", train), ("valid", valid), ("test", test))
    }
    made = Dataset(
        name, tuple(train), tuple(valid), tuple(test), tuple(rules), domains or {}, tuple(notices)
    )
    odd = [*_overlaps(made, lines), *_predicates(made, lines), *_constants(made, lines)]
    return replace(made, notices=(*made.notices, *odd), places=lines["test"])


def _overlaps(data: Dataset, lines: Places) -> list[Notice]:
    notices = []
    splits = list(data.splits.items())
    for i, (first, facts) in enumerate(splits):
        for second, others in splits[i + 1 :]:
            known = set(facts)
            both = [fact for fact in others if fact in known]
            if both:
                message = f"{first} and {second} share {len(both)} facts: {_few(both)}"
                notices.append(Notice("overlap", message, lines[second].get(both[0])))
    return notices


def _predicates(data: Dataset, lines: Places) -> list[Notice]:
    made = {f.predicate for f in data.train} | {r.head.predicate for r in data.rules}
    notices = []
    for split in ("valid", "test"):
        first = {f.predicate: f for f in reversed(data.splits[split])}
        for predicate in sorted(set(first) - made):
            message = (
                f"the predicate {predicate} of {split} is in no fact of train and no rule's "
                "head: nothing proves it"
            )
            where = lines[split].get(first[predicate])
            notices.append(Notice("unknown-predicate", message, where))
    for rule in data.rules:
        for predicate in sorted({a.predicate for a in rule.body} - made):
            message = (
                f"the predicate {predicate} is in no fact of train and no rule's head: "
                f"{rule} never applies"
            )
            notices.append(Notice("unknown-predicate", message, rule.where))
    return notices


def _constants(data: Dataset, lines: Places) -> list[Notice]:
    known = {c for f in data.train for c in f[1:]}
    notices = []
    for split in ("valid", "test"):
        first = {c: f for f in reversed(data.splits[split]) for c in f[1:] if c not in known}
        if first:
            message = (
                f"{len(first)} of the constants of {split} are not in train: {_few(sorted(first))}"
            )
            where = lines[split].get(first[min(first)])
            notices.append(Notice("unknown-constant", message, where))
    known.update(t for rule in data.rules for t in rule.head[1:] if isinstance(t, str))
    for rule in data.rules:
        terms = {t for atom in rule.body for t in atom[1:] if isinstance(t, str)}
        for constant in sorted(terms - known):
            message = f"the constant {constant} is in no fact of train: {rule} never applies"
            notices.append(Notice("unknown-constant", message, rule.where))
    known.update(c for split in ("valid", "test") for f in data.splits[split] for c in f[1:])
    for domain, members in data.domains.items():
        new = sorted(set(members) - known)
        if new:
            message = (
                f"{len(new)} of the constants of the domain {domain} are in no fact: {_few(new)}"
            )
            notices.append(Notice("unknown-constant", message))
    return notices


def _few(items: list[Fact] | list[str]) -> str:
    shown = ", ".join(str(item) for item in items[:3])
    return f"{shown}, …" if len(items) > 3 else shown
