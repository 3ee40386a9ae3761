"""Family: the embedded data set, family trees made by a seeded generator.

`family:families=10,generations=4,children=3,seed=0`: each part may be left out.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, fields

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.dataset import Dataset, build
from tenfold.apps.prover.input.read_rules import parse_rules
from tenfold.apps.prover.input.terms import Fact

# True of every tree that is made here: a rule never gives a fact that does not hold.
RULES = """\
wife1:1:husband(x,y) -> wife(y,x)
husband1:1:wife(x,y) -> husband(y,x)
husband2:1:father(x,z), mother(y,z) -> husband(x,y)
wife2:1:mother(x,z), father(y,z) -> wife(x,y)
father1:1:father(x,z), brother(z,y) -> father(x,y)
father2:1:father(x,z), sister(z,y) -> father(x,y)
father3:1:husband(x,y), mother(y,z) -> father(x,z)
father4:1:husband(x,y), son(z,y) -> father(x,z)
father5:1:husband(x,y), daughter(z,y) -> father(x,z)
mother1:1:mother(x,z), brother(z,y) -> mother(x,y)
mother2:1:mother(x,z), sister(z,y) -> mother(x,y)
mother3:1:wife(x,y), father(y,z) -> mother(x,z)
mother4:1:wife(x,y), son(z,y) -> mother(x,z)
mother5:1:wife(x,y), daughter(z,y) -> mother(x,z)
son1:1:brother(x,y), son(y,z) -> son(x,z)
son2:1:brother(x,y), daughter(y,z) -> son(x,z)
son3:1:father(z,x), brother(x,y) -> son(x,z)
son4:1:mother(z,x), brother(x,y) -> son(x,z)
son5:1:son(x,y), husband(y,z) -> son(x,z)
son6:1:son(x,y), wife(y,z) -> son(x,z)
daughter1:1:sister(x,y), son(y,z) -> daughter(x,z)
daughter2:1:sister(x,y), daughter(y,z) -> daughter(x,z)
daughter3:1:father(z,x), sister(x,y) -> daughter(x,z)
daughter4:1:mother(z,x), sister(x,y) -> daughter(x,z)
daughter5:1:daughter(x,y), husband(y,z) -> daughter(x,z)
daughter6:1:daughter(x,y), wife(y,z) -> daughter(x,z)
brother1:1:son(x,z), daughter(y,z) -> brother(x,y)
sister1:1:daughter(x,z), son(y,z) -> sister(x,y)
uncle1:1:brother(x,z), father(z,y) -> uncle(x,y)
uncle2:1:brother(x,z), mother(z,y) -> uncle(x,y)
uncle3:1:uncle(x,z), brother(z,y) -> uncle(x,y)
uncle4:1:uncle(x,z), sister(z,y) -> uncle(x,y)
aunt1:1:sister(x,z), father(z,y) -> aunt(x,y)
aunt2:1:sister(x,z), mother(z,y) -> aunt(x,y)
aunt3:1:aunt(x,z), brother(z,y) -> aunt(x,y)
aunt4:1:aunt(x,z), sister(z,y) -> aunt(x,y)
nephew1:1:son(x,z), brother(z,y) -> nephew(x,y)
nephew2:1:son(x,z), sister(z,y) -> nephew(x,y)
nephew3:1:brother(x,z), nephew(z,y) -> nephew(x,y)
nephew4:1:brother(x,z), niece(z,y) -> nephew(x,y)
niece1:1:daughter(x,z), brother(z,y) -> niece(x,y)
niece2:1:daughter(x,z), sister(z,y) -> niece(x,y)
niece3:1:sister(x,z), nephew(z,y) -> niece(x,y)
niece4:1:sister(x,z), niece(z,y) -> niece(x,y)
"""


@dataclass(frozen=True, slots=True)
class Size:
    """What the generator is told."""

    families: int = 10
    generations: int = 4
    children: int = 3  # of a couple at most
    seed: int = 0
    held: int = 30  # per cent of the facts that are not in train: a third valid, the rest test


def read_size(text: str) -> Size:
    """The sizes in `family:…`.

    >>> read_size("family:families=2,seed=7")
    Size(families=2, generations=4, children=3, seed=7, held=30)
    """
    given: dict[str, int] = {}
    names = [f.name for f in fields(Size)]
    for part in filter(None, text.partition(":")[2].split(",")):
        name, _, value = part.partition("=")
        if name not in names or not value.isdigit():
            raise InputError(
                f"{part!r} in {text!r}", fix=f"write name=number, names: {', '.join(names)}"
            )
        given[name] = int(value)
    size = Size(**given)
    if size.held > 90 or min(size.families, size.generations) < 1:
        raise InputError(
            f"{text!r} leaves no facts", fix="families and generations from 1, held ≤ 90"
        )
    return size


def family(size: Size) -> Dataset:
    """The data set of these sizes: the same for the same sizes and seed, everywhere."""
    draw = random.Random(size.seed)
    facts = sorted(_relations(_grow(size, draw)))
    draw.shuffle(facts)
    held = len(facts) * size.held // 100
    valid, test, train = facts[: held // 3], facts[held // 3 : held], facts[held:]
    rules, _ = parse_rules(RULES, "family")
    return build("family", sorted(train), sorted(valid), sorted(test), rules)


@dataclass(slots=True)
class _Person:
    name: str
    male: bool
    parents: tuple[_Person, _Person] | None = None  # father, mother
    spouse: _Person | None = None


def _grow(size: Size, draw: random.Random) -> list[_Person]:
    people: list[_Person] = []

    def born(male: bool, parents: tuple[_Person, _Person] | None = None) -> _Person:
        people.append(_Person(f"person{len(people)}", male, parents))
        return people[-1]

    for _ in range(size.families):
        living = [born(draw.random() < 0.5)]
        for generation in range(size.generations):
            children: list[_Person] = []
            for person in living:
                if generation and draw.random() < 0.25:
                    continue  # stays alone
                spouse = born(not person.male)
                person.spouse, spouse.spouse = spouse, person
                couple = (person, spouse) if person.male else (spouse, person)
                count = draw.randint(1, size.children) if size.children else 0
                children.extend(born(draw.random() < 0.5, couple) for _ in range(count))
            living = children
    return people


def _relations(people: list[_Person]) -> list[Fact]:
    facts: list[Fact] = []
    below: dict[int, list[_Person]] = {}
    for person in people:
        if person.parents:
            for parent in person.parents:
                below.setdefault(id(parent), []).append(person)

    def say(one: _Person, other: _Person, male: str, female: str) -> None:
        facts.append(Fact(male if one.male else female, one.name, other.name))

    for person in people:
        if person.spouse:
            say(person, person.spouse, "husband", "wife")
        for parent in person.parents or ():
            say(parent, person, "father", "mother")
            say(person, parent, "son", "daughter")
            for aunt in _siblings(parent, below):
                say(aunt, person, "uncle", "aunt")
                say(person, aunt, "nephew", "niece")
        for sibling in _siblings(person, below):
            say(person, sibling, "brother", "sister")
    return facts


def _siblings(person: _Person, below: dict[int, list[_Person]]) -> list[_Person]:
    if person.parents is None:
        return []
    return [p for p in below[id(person.parents[0])] if p is not person]
