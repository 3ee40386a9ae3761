"""Late: tables whose entries are imported when they are asked for.

A program uses few of the ops and of NumPy's functions that Tenfold knows, and to import the rest
takes as long as many programs run. What is in a table is found as in a dict, and as fast.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Late(dict[K, V]):
    """A dict that is filled further when a key is missed, and wholly when all are asked for.

    >>> class Squares(Late[int, int]):
    ...     def bring(self, key):
    ...         self[key] = key * key
    >>> squares = Squares()
    >>> squares[3], 4 in squares, squares.get(5)
    (9, True, 25)
    """

    def bring(self, key: Any) -> None:
        """Put in what is filed under this key, if anything is."""
        raise NotImplementedError

    def whole(self) -> None:
        """Put in whatever there is."""

    def __missing__(self, key: Any) -> V:
        self.bring(key)
        if super().__contains__(key):
            return super().__getitem__(key)
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or self.get(key, self) is not self

    def get(self, key: Any, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def __iter__(self) -> Iterator[K]:
        self.whole()
        return super().__iter__()

    def __len__(self) -> int:
        self.whole()
        return super().__len__()

    def keys(self) -> KeysView[K]:  # type: ignore[override]
        return KeysView(self)

    def values(self) -> ValuesView[V]:  # type: ignore[override]
        return ValuesView(self)

    def items(self) -> ItemsView[K, V]:  # type: ignore[override]
        return ItemsView(self)
