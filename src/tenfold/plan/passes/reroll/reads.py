"""What the nodes of a column read: how it goes from round to round."""

from __future__ import annotations

from tenfold.frozen import frozen


@frozen
class SameValue:
    """What is read is one value in all rounds."""

    value: int


@frozen(eq=False)
class Literals:
    """What is read is a literal in each round; their values."""

    values: tuple[int, ...]


@frozen
class Internal:
    """What is read is made by a column, so many rounds ago. `values` are those that are read."""

    column: int
    output: int
    distance: int
    values: tuple[int, ...]


@frozen
class Views:
    """What is read moves elements of one value or of literals: nodes of each round, outermost
    first, and what the innermost read."""

    nodes: tuple[tuple[int, ...], ...]
    source: SameValue | Literals


Read = SameValue | Literals | Internal | Views
