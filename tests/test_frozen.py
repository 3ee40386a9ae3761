"""Frozen classes behave as dataclasses that are frozen and have slots."""

from __future__ import annotations

import copy
import pickle
import weakref
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from typing import Any

import pytest

from tenfold.frozen import FEW, frozen, mutable


@frozen
class Mine:
    """With a default, a factory, something left out of equality and something not given."""

    x: int
    y: tuple[int, ...] = (1,)
    notes: list[str] = field(default_factory=list, compare=False, repr=False)
    kind: str = field(default="mine", init=False)

    @property
    def total(self) -> int:
        return self.x + sum(self.y)


@dataclass(frozen=True, slots=True)
class Theirs:
    """The same, by the standard library."""

    x: int
    y: tuple[int, ...] = (1,)
    notes: list[str] = field(default_factory=list, compare=False, repr=False)
    kind: str = field(default="mine", init=False)

    @property
    def total(self) -> int:
        return self.x + sum(self.y)


@frozen(eq=False)
class Same:
    """One that is equal to itself alone."""

    x: int


@frozen(order=True, kw_only=True)
class Placed:
    """One with an order, given by names."""

    row: int
    column: int = 0

    def __post_init__(self) -> None:
        if self.row < 0:
            raise ValueError("row")


@frozen
class More(Mine):
    """One with a field more."""

    z: int = 9


@pytest.mark.parametrize(
    "look",
    [
        lambda c: repr(c(1)).replace("Theirs", "Mine"),
        lambda c: c(1, (2,), notes=["a"]) == c(1, (2,)),
        lambda c: c(1) == c(2),
        lambda c: c(1) == 1,
        lambda c: hash(c(1, (5,))),
        lambda c: c(3, (4, 5)).total,
        lambda c: c(1).notes is c(1).notes,
        lambda c: asdict(c(1, notes=["b"])),
        lambda c: asdict(replace(c(1), y=(7,))),
        lambda c: [f.name for f in fields(c)],
        lambda c: c.__slots__,
        lambda c: c.__match_args__,
        lambda c: hasattr(c(1), "__dict__"),
        lambda c: asdict(pickle.loads(pickle.dumps(c(1, (3,))))),
        lambda c: asdict(copy.deepcopy(c(1, (3,), ["n"]))),
    ],
)
def test_as_the_standard_library_does(look: Any) -> None:
    for _ in range(FEW + 1):  # field by field, then by methods that were written
        assert look(Mine) == look(Theirs)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [((), {}), ((1, 2, 3, 4), {}), ((1,), {"x": 2}), ((1,), {"z": 2}), ((1,), {"kind": "a"})],
)
def test_wrong_arguments_are_named_alike(arguments: tuple[int, ...], named: dict[str, Any]) -> None:
    class Fresh(Mine):
        """One that was never made."""

    fresh = frozen(Fresh)
    for cls in (fresh, Mine):
        with pytest.raises(TypeError) as mine:
            cls(*arguments, **named)
        with pytest.raises(TypeError) as theirs:
            Theirs(*arguments, **named)
        says = str(theirs.value).replace("Theirs", cls.__qualname__)
        assert str(mine.value) == says


def test_one_that_changes() -> None:
    @mutable(weak=True)
    class Count:
        """How many, and of what."""

        n: int = 0
        names: list[str] = field(default_factory=list)

    for _ in range(FEW + 1):
        count, other = Count(), Count(n=0)
        assert count != other
        assert hash(count) != hash(other)
        count.n += 1
        count.names.append("a")
        assert (count.n, other.names) == (1, [])
        assert weakref.ref(count)() is count
        assert not hasattr(count, "__dict__")


def test_nothing_can_be_changed() -> None:
    made = Mine(1)
    with pytest.raises(FrozenInstanceError, match=r"Mine\.x"):
        made.x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match=r"Mine\.x"):
        del made.x
    assert made.x == 1


def test_equal_to_itself_alone() -> None:
    made = Same(1)
    assert made == made
    assert made != Same(1)
    assert len({made, Same(1)}) == 2


def test_in_order_and_by_names() -> None:
    assert Placed(row=1, column=5) < Placed(row=2)
    assert sorted([Placed(row=2), Placed(row=1)])[0].row == 1
    with pytest.raises(TypeError):
        Placed(1)  # type: ignore[misc]
    with pytest.raises(ValueError, match="row"):
        Placed(row=-1)


def test_with_a_field_more() -> None:
    assert More(1, z=3) == More(1, (1,), [], 3)
    assert More.__slots__ == ("z",)
    assert repr(More(1)) == "More(x=1, y=(1,), kind='mine', z=9)"
