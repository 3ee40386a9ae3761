"""The entry point of a plan: a program with its captured arrays and guards bound, and the form of
the calls that it answers without Python's slow path."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from tenfold.api.call.form import CallForm
from tenfold.backends.guard import HOLDS, Guard, holds
from tenfold.backends.program import OUTPUTS, Program, decline


class EntryPoint:
    """A program bound so that native code answers calls of a form.

    `guards` are what native code looks at in each call; where it can't, `stands` is asked instead.
    `apart` are leaves that are written into, with captured arrays that they must not be; `copied`
    those that the plan writes into though the caller keeps them. With `keep` results stay on the
    program's device.
    """

    def __init__(
        self,
        program: Program,
        form: CallForm,
        captures: Sequence[np.ndarray[Any, Any]] = (),
        guards: Sequence[Guard] | None = (),
        *,
        stands: Callable[[], bool] | None = None,
        apart: Sequence[tuple[int, Any]] = (),
        copied: Collection[int] = (),
        keep: bool = False,
    ) -> None:
        self.program = program
        self.form = form
        self.captures = captures
        self.guards = guards
        self.apart = apart
        self.copied = frozenset(copied)
        self._leased = program.lease is not None
        self.flat = form.answer is not None and not apart and not copied
        looked = ((stands, HOLDS, True),) if guards is None else guards
        answer = form.answer if self.flat else OUTPUTS
        updates = form.updates
        self.bound = program.bind(
            decline, captures, looked, updates=updates, answer=answer, keep=keep
        )

    @property
    def key(self) -> Any:
        """What is equal for those of one function whose calls are taken apart alike."""
        others = tuple((n, id(array)) for n, array in self.apart)
        return self.form.key, others, self.copied

    @property
    def over(self) -> bool:
        """Whether it was bound until a check would go on, which it has come to the end of."""
        return self._leased and self.program.lease is None

    def has(self, captures: Sequence[np.ndarray[Any, Any]]) -> bool:
        """Whether these are the captures that it is bound to."""
        return all(a is b for a, b in zip(captures, self.captures, strict=True))

    def lets_in(self, captures: Sequence[np.ndarray[Any, Any]]) -> bool:
        """Whether its guards hold now: an equal setting may stand where another stood."""
        return all(map(holds, self.guards or ())) and self.has(captures)

    def still(
        self, captures: Sequence[np.ndarray[Any, Any]], guards: Sequence[Guard] | None
    ) -> bool:
        """Whether these are the captures and guards that it is bound to."""
        if guards is None or self.guards is None:
            return guards is self.guards and self.has(captures)
        return (
            len(guards) == len(self.guards)
            and self.has(captures)
            and all(
                all(x is y for x, y in zip(a, b, strict=True))
                for a, b in zip(guards, self.guards, strict=True)
            )
        )
