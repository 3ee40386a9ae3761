"""Bottom-up reference: every fact that follows, with the height of its lowest proof.

Plain Python sets, round by round. Round h joins, for each body atom in turn, the facts of height
h - 1 in that place with all facts below height h in the others; so what round h adds has no lower
proof. A fact has height 0, what a rule gives 1 more than the highest of its body (1 if the body is
empty).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from tenfold.apps.prover.input.program import Clause, Program, Triple

Index = dict[int, dict[int, set[int]]]  # predicate, one argument, the others
Row = tuple[int, ...]  # what each variable of a clause stands for, -1 while it is free


@dataclass(frozen=True, slots=True)
class Closure:
    """The heights of all that is proved, and whether nothing more follows at any height."""

    heights: dict[Triple, int]
    complete: bool


def close(
    program: Program,
    limit: int | None = None,
    without: Triple | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> Closure:
    """The closure of a program up to a height; `without` is a fact that is not to be used.

    `watch` is told the height and the facts so far after each round.

    >>> from tenfold.apps.prover.input.program import program
    >>> from tenfold.apps.prover.input.terms import Atom, Fact, Rule, Variable
    >>> x, y = Variable("X"), Variable("Y")
    >>> swap = Rule(Atom("p", x, y), (Atom("p", y, x),))
    >>> close(program([Fact("p", "a", "b")], [swap])).heights
    {(0, 0, 1): 0, (0, 1, 0): 1}
    """
    heights: dict[Triple, int] = {}
    store = _Store()
    new = [fact for fact in program.facts if fact != without]
    height = 0
    while True:
        for fact in new:
            heights[fact] = height
        store.add(new)
        if watch:
            watch(height, len(heights))
        height += 1
        new = _derive(program.clauses, store, new, first=height == 1)
        if not new:
            return Closure(heights, True)
        if limit is not None and height > limit:
            return Closure(heights, False)


class _Store:
    """Facts by subject and by object."""

    __slots__ = ("by_object", "by_subject")

    def __init__(self) -> None:
        self.by_subject: Index = defaultdict(lambda: defaultdict(set))
        self.by_object: Index = defaultdict(lambda: defaultdict(set))

    def add(self, facts: Iterable[Triple]) -> None:
        for p, s, o in facts:
            self.by_subject[p][s].add(o)
            self.by_object[p][o].add(s)

    def objects(self, p: int, s: int) -> Collection[int]:
        return self.by_subject[p].get(s, ()) if p in self.by_subject else ()

    def subjects(self, p: int, o: int) -> Collection[int]:
        return self.by_object[p].get(o, ()) if p in self.by_object else ()

    def pairs(self, p: int) -> list[tuple[int, int]]:
        return [(s, o) for s, row in self.by_subject.get(p, {}).items() for o in row]

    def all(self) -> list[Triple]:
        return [(p, s, o) for p in self.by_subject for s, o in self.pairs(p)]


def _derive(
    clauses: Iterable[Clause], store: _Store, new: list[Triple], first: bool
) -> list[Triple]:
    """What follows in one step from facts of which at least one is new, and is not there yet."""
    changed, found = _Store(), _Store()
    changed.add(new)
    for clause in clauses:
        if not clause.body and first:
            p, s, o = clause.head
            if o not in store.objects(p, s):
                found.add([clause.head])
        for at in range(len(clause.body)):
            if clause.body[at][0] in changed.by_subject:
                _apply(clause, at, store, changed, found)
    return sorted(found.all())


def _apply(clause: Clause, at: int, store: _Store, changed: _Store, found: _Store) -> None:
    """Find the heads of a clause whose body atom `at` is matched by a changed fact."""
    rows = _extend([(-1,) * clause.variables], clause.body[at], changed)
    rest = _ordered(clause.body, at)
    for atom in rest[:-1]:
        rows = _extend(rows, atom, store)
    if rest and _last_by_rows(clause.head, rest[-1], rows, store, found):
        return
    p, s, o = clause.head
    for row in _extend(rows, rest[-1], store) if rest else rows:
        subject, object = (row[-1 - s] if s < 0 else s), (row[-1 - o] if o < 0 else o)
        if object not in store.objects(p, subject):
            found.add([(p, subject, object)])


def _ordered(body: tuple[Triple, ...], at: int) -> list[Triple]:
    """The other atoms, each after one that shares a variable with it where there is such."""
    bound = {t for t in body[at][1:] if t < 0}
    left = [atom for i, atom in enumerate(body) if i != at]
    done: list[Triple] = []
    while left:
        best = max(left, key=lambda atom: sum(t >= 0 or t in bound for t in atom[1:]))
        left.remove(best)
        done.append(best)
        bound.update(t for t in best[1:] if t < 0)
    return done


def _extend(rows: list[Row], atom: Triple, store: _Store) -> list[Row]:
    """Each row with each fact that matches the atom under it."""
    p, s, o = atom
    result: list[Row] = []
    for row in rows:
        subject, object = (row[-1 - s] if s < 0 else s), (row[-1 - o] if o < 0 else o)
        if subject >= 0 and object >= 0:
            if object in store.objects(p, subject):
                result.append(row)
        elif subject >= 0:
            result.extend(_with(row, o, other) for other in store.objects(p, subject))
        elif object >= 0:
            result.extend(_with(row, s, other) for other in store.subjects(p, object))
        elif s == o:
            result.extend(_with(row, s, a) for a, b in store.pairs(p) if a == b)
        else:
            result.extend(_with(_with(row, s, a), o, b) for a, b in store.pairs(p))
    return result


def _with(row: Row, variable: int, value: int) -> Row:
    at = -1 - variable
    return (*row[:at], value, *row[at + 1 :])


def _last_by_rows(
    head: Triple, atom: Triple, rows: list[Row], store: _Store, found: _Store
) -> bool:
    """Match the last atom by differences of sets, where it binds just one end of the head.

    False where it does not; nothing is done then.
    """
    if not rows:
        return True
    bound = {-1 - i for i, value in enumerate(rows[0]) if value >= 0}  # the same in every row
    free = {t for t in atom[1:] if t < 0} - bound
    p, s, o = atom
    q, x, y = head
    if len(free) != 1 or s == o or x == y or (x in free) == (y in free):
        return False
    ends = store.objects if o in free else store.subjects
    key = s if o in free else o
    for row in rows:
        others = ends(p, row[-1 - key] if key < 0 else key)
        if not others:
            continue
        if y in free:
            subject = row[-1 - x] if x < 0 else x
            fresh = set(others).difference(store.objects(q, subject), found.objects(q, subject))
            found.add((q, subject, other) for other in fresh)
        else:
            object = row[-1 - y] if y < 0 else y
            fresh = set(others).difference(store.subjects(q, object), found.subjects(q, object))
            found.add((q, other, object) for other in fresh)
    return True
