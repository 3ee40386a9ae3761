"""Names: the predicates and entities of the data, by which names in rules are recognised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tenfold.apps.prover.input.terms import Fact


@dataclass(frozen=True, slots=True)
class Names:
    """What the facts and domains of a data set name."""

    predicates: frozenset[str] = frozenset()
    entities: frozenset[str] = frozenset()


def names_of(
    *splits: Iterable[Fact], domains: Mapping[str, tuple[str, ...]] | None = None
) -> Names:
    """The names of some splits and domains.

    >>> sorted(names_of([Fact("p", "a", "b")], domains={"d": ("c",)}).entities)
    ['a', 'b', 'c']
    """
    facts = [fact for split in splits for fact in split]
    listed = (c for members in (domains or {}).values() for c in members)
    return Names(
        frozenset(f.predicate for f in facts),
        frozenset(c for f in facts for c in f[1:]) | frozenset(listed),
    )
