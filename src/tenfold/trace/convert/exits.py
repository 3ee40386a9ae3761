"""How a part of a function is left: at its end, by break, continue or return."""

from __future__ import annotations

from typing import Any

from tenfold.frozen import frozen

END, BREAK, CONTINUE, RETURN = range(4)


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


NOTHING = _Nothing()  # where a part returned no value, or a variable has none


@frozen(eq=False)
class Exit:
    """How a part was left. Where the program decides, `kinds` are those that may be and `kind` is
    traced; `value` is what was returned, and anything of its type where nothing was."""

    kinds: frozenset[int]
    kind: Any
    value: Any = NOTHING

    @staticmethod
    def by(kind: int, value: Any = NOTHING) -> Exit:
        return Exit(frozenset((kind,)), kind, value)

    @property
    def known(self) -> bool:
        return len(self.kinds) == 1

    def without(self, *kinds: int) -> Exit:
        """This exit where it is known not to be of these kinds."""
        left = self.kinds.difference(kinds)
        return Exit(left, next(iter(left)) if len(left) == 1 else self.kind, self.value)


AT_END = Exit.by(END)
EXITS = {kind: Exit.by(kind) for kind in (END, BREAK, CONTINUE)}
