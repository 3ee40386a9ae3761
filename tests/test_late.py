"""Tables that are filled when they are asked."""

from __future__ import annotations

from typing import Any

import pytest

from tenfold.late import Late


class Letters(Late[str, int]):
    """The codes of vowels."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def bring(self, key: Any) -> None:
        self.asked.append(key)
        if key in "aeiou":
            self[key] = ord(key)

    def whole(self) -> None:
        for key in "aeiou":
            self[key] = ord(key)


def test_what_is_there_is_not_asked_for_again() -> None:
    letters = Letters()
    assert [letters["a"], letters["a"], letters.get("a"), "a" in letters] == [97, 97, 97, True]
    assert letters.asked == ["a"]


def test_what_is_not_there_is_missing() -> None:
    letters = Letters()
    with pytest.raises(KeyError, match="x"):
        letters["x"]
    assert letters.get("x", 5) == 5
    assert letters.get("x") is None
    assert "x" not in letters
    assert dict.__len__(letters) == 0


@pytest.mark.parametrize(
    "all_of",
    [list, dict, set, lambda t: t.keys(), lambda t: dict(t.items()), lambda t: [*t], len],
    ids=["list", "dict", "set", "keys", "items", "star", "len"],
)
def test_who_asks_for_all_gets_all(all_of: Any) -> None:
    found = all_of(Letters())
    assert (found if isinstance(found, int) else len(found)) == 5


def test_values_and_merging() -> None:
    assert sorted(Letters().values()) == sorted(map(ord, "aeiou"))
    assert {**Letters()} == {c: ord(c) for c in "aeiou"}
