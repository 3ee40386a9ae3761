"""The operators that rewritten functions call.

Each looks at what is tested. A value that is known has Python's own statement carried out; a
traced one makes a branch or a loop of the program.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from tenfold.errors import ControlError, TenfoldError
from tenfold.trace.control.effects import call_host
from tenfold.trace.convert.agreement import Disagreement
from tenfold.trace.convert.branches import decide
from tenfold.trace.convert.builtin import builtin, truth
from tenfold.trace.convert.exits import (
    AT_END,
    BREAK,
    CONTINUE,
    END,
    EXITS,
    NOTHING,
    RETURN,
    Exit,
)
from tenfold.trace.convert.explain import note, tried
from tenfold.trace.convert.loops import Loop, either
from tenfold.trace.convert.region import Cells, content
from tenfold.trace.convert.rounds import Rounds, rounds
from tenfold.trace.convert.statements import Site
from tenfold.trace.convert.unchanging import iterators, unchanging
from tenfold.trace.scope import current
from tenfold.trace.source import blame, describe, here, locate
from tenfold.trace.surface.emit import is_traced

Thunk = Callable[[], Any]
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda a, b: a in b,
    "NotIn": lambda a, b: a not in b,
}
# A for whose rounds are known is made a loop of the program if it would come to more nodes than
# this, or than eight times as many where there are few rounds: those are faster written out.
LONG, FEW = 256, 8
_KNOWN = "Python (what is tested is known while tracing)"


class Control:
    """The operators of one function, and the statements they stand for."""

    BREAK = EXITS[BREAK]
    CONTINUE = EXITS[CONTINUE]
    builtin = staticmethod(builtin)
    truth = staticmethod(truth)

    def __init__(
        self, function: FunctionType, sites: Sequence[Site], converted: Callable[[Any], Any]
    ) -> None:
        self.function = function  # as it is written
        self.file, self.name = function.__code__.co_filename, function.__qualname__
        self.sites, self.converted = sites, converted
        self.reasons: dict[str, tuple[Site, str]] = {}  # why variables have no value

    def note(self, site: Site, text: str) -> None:
        note(self.file, site.line, f"{site.kind} → {text}")

    def label(self, site: Site) -> str:
        return f"the {site.kind} of line {site.line} in {self.name}"

    # -- how parts are left

    def returned(self, value: Any) -> Exit:
        return Exit.by(RETURN, value)

    def result(self, exit: Exit | None) -> Any:
        """What the function returns."""
        if exit is None or exit.kinds == {END}:
            return None
        if exit.known:
            return None if exit.value is NOTHING else exit.value
        if exit.value is NOTHING or exit.value is None:
            return None
        raise ControlError(
            f"{self.name} returns a value on some paths, and comes to its end without one on "
            "others; which, only a running program knows",
            where=describe(here()),
            fix="end it with a return of the same type",
        )

    def raised(self, error: Any, cause: Any) -> Exit:
        """An error raised: where the program decides whether, when it runs."""
        if not _deciding():
            if cause is None:
                raise error
            raise error from cause

        def fail() -> None:
            raise error

        place = locate(here())
        if place is not None:
            note(self.file, place.line, "raise → raised on the host when the program runs")
        call_host(fail, (), name="raise")
        return Exit.by(RETURN)

    # -- statements

    def if_(self, number: int, test: Any, then: FunctionType, orelse: FunctionType) -> Exit | None:
        site = self.sites[number]
        if not is_traced(test):
            self.note(site, _KNOWN)
            return (then if test else orelse)()  # type: ignore[no-any-return]
        with unchanging(site, then, orelse):
            cells, label, lost = Cells(site, then), self.label(site), self.lost(site)
            exit, how = decide(site, label, test, then, orelse, cells, lost)
        self.note(site, how)
        return exit

    def go_on(self, number: int, exit: Exit | None, rest: FunctionType) -> Exit | None:
        """What follows a statement, where that was not left."""
        if exit is None or exit.kinds == {END}:
            return rest()  # type: ignore[no-any-return]
        if END not in exit.kinds:
            return exit
        site = self.sites[number]
        left = exit.without(END)
        with unchanging(site, rest):
            cells = Cells(site, rest)
            label, lost = self.label(site), self.lost(site)
            return decide(site, label, exit.kind == END, rest, lambda: left, cells, lost)[0]

    def while_(
        self,
        number: int,
        test: FunctionType,
        body: FunctionType,
        orelse: FunctionType | None = None,
    ) -> Exit | None:
        site = self.sites[number]
        exit = AT_END
        while True:
            go = test()
            if is_traced(go):
                break
            if not go:
                self.note(site, _KNOWN)
                return self.ended(number, AT_END, orelse)
            exit = body() or AT_END
            if not exit.known:
                break
            if exit.kind in (BREAK, RETURN):
                self.note(site, _KNOWN)
                return self.ended(number, exit, orelse)
        cells = Cells(site, body)
        loop = Loop(
            site,
            self.label(site),
            cells,
            lambda _: body(),
            lambda _: test(),
            go,
            exit,
            written=_written(site, body),
            lost=self.lost(site),
        )
        return self.looped(number, loop, (test, body), orelse)

    def for_(
        self, number: int, items: Any, body: FunctionType, orelse: FunctionType | None = None
    ) -> Exit | None:
        site = self.sites[number]
        known = rounds(items) if current() is not None else None
        if known is not None and is_traced(known.count):
            return self.counted(number, known, 0, AT_END, body, orelse)
        done = 0
        reason = ""
        scope = current()
        first = 0 if scope is None else len(scope.builder)
        for item in items:
            nodes = 0 if scope is None else len(scope.builder)
            exit = body(item) or AT_END
            done += 1
            if not exit.known:
                if known is None:
                    raise self.refused(
                        site,
                        f"is left by a traced test, and goes over a {type(items).__name__}",
                        "go over a range or an array",
                    )
                return self.counted(number, known, done, exit, body, orelse)
            if exit.kind in (BREAK, RETURN):
                self.note(site, _KNOWN)
                return self.ended(number, exit, orelse)
            if scope is None or known is None or reason or site.lasting or iterators((body,)):
                continue
            now, left = len(scope.builder), known.count - done
            if left > 1 and now - first + (now - nodes) * left > LONG * (1 if left > FEW else 8):
                callbacks = len(scope.trace.callbacks)
                try:
                    with tried():
                        return self.counted(number, known, done, exit, body, orelse, fixed=True)
                except (TenfoldError, TypeError, NameError, Disagreement) as error:
                    scope.trace.forget(callbacks)
                    reason = f"; a loop of the program fails: {str(error).splitlines()[0]}"
        self.note(site, f"Python (its rounds are known while tracing{reason})")
        return self.ended(number, AT_END, orelse)

    def counted(
        self,
        number: int,
        known: Rounds,
        done: int,
        exit: Exit,
        body: FunctionType,
        orelse: FunctionType | None,
        fixed: bool = False,
    ) -> Exit | None:
        """The rounds of a for from some on, in the program."""
        site = self.sites[number]
        length = None if is_traced(known.count) else known.count - done
        if length == 0:
            return self.ended(number, exit, orelse)
        loop = Loop(
            site,
            self.label(site),
            Cells(site, body),
            lambda k: body(known.at(k)),
            lambda k: k + 1 < known.count,
            done < known.count,
            exit,
            done,
            length if exit.known else None,
            _written(site, body),
            self.lost(site),
            fixed,
        )
        return self.looped(number, loop, (body,), orelse)

    def looped(
        self,
        number: int,
        loop: Loop,
        parts: Sequence[FunctionType],
        orelse: FunctionType | None,
    ) -> Exit | None:
        site = self.sites[number]
        with unchanging(site, *parts):
            exit = loop.run()
        every = [pair for part in parts for pair in _variables(part).items()]
        updated = {name for name, value in every if any(value is a for a in loop.arrays.values())}
        carried = ", ".join(sorted({*loop.carried, *updated})) or "nothing"
        kind = "while_loop" if loop.length is None else f"fori_loop of {loop.length} rounds"
        self.note(site, f"{kind}, carries {carried}")
        return self.ended(number, exit, orelse)

    def ended(self, number: int, exit: Exit, orelse: FunctionType | None) -> Exit | None:
        """A loop behind its rounds: `else`, and going on after a break."""
        if orelse is not None:
            exit = self.go_on(number, exit, orelse) or AT_END
        if exit.kinds <= {END, BREAK, CONTINUE}:
            return None
        if exit.known:
            return exit
        if BREAK not in exit.kinds and CONTINUE not in exit.kinds:
            return exit
        # of the other kinds only a return leaves the loop's statement
        return Exit(frozenset((END, RETURN)), either(exit.kind == RETURN, RETURN, END), exit.value)

    def lost(self, site: Site) -> Callable[[str, str], None]:
        def told(name: str, why: str) -> None:
            self.reasons[name] = site, why

        return told

    def unbound(self, error: NameError) -> Exception:
        """The error of a variable without a value: why it has none."""
        found = re.search(r"variable '([^']+)'", str(error))
        place = locate(blame(error))
        if found is None or place is None or place.file != self.file:
            return error
        name = found[1]
        if name not in self.reasons:
            return error
        site, why = self.reasons[name]
        return ControlError(
            f"{name} is used after the {site.kind} of line {site.line}, which leaves it without "
            f"one type: {why}",
            where=describe(blame(error)),
            fix=_remedy(site, name, why),
        )

    def assert_(self, test: Any, message: Thunk) -> None:
        if not is_traced(test):
            if __debug__ and not test:
                said = message()
                raise AssertionError() if said is None else AssertionError(said)
            return
        said = message()

        def check(held: Any) -> tuple[()]:
            if not held:
                raise AssertionError() if said is None else AssertionError(said)
            return ()

        place = locate(here())
        if place is not None:
            note(self.file, place.line, "assert → checked on the host when the program runs")
        call_host(check, (), test, name="assert")

    # -- expressions

    def and_(self, left: Any, right: Thunk) -> Any:
        if not is_traced(left):
            return right() if left else left
        return self.either("and", left, right, lambda: left)

    def or_(self, left: Any, right: Thunk) -> Any:
        if not is_traced(left):
            return left if left else right()
        return self.either("or", left, lambda: left, right)

    def not_(self, value: Any) -> Any:
        return ~value if is_traced(value) and not value.shape else not value

    def choose(self, test: Any, then: Thunk, orelse: Thunk) -> Any:
        if not is_traced(test):
            return then() if test else orelse()
        return self.either("conditional expression", test, then, orelse)

    def compare(self, left: Any, *rest: Any) -> Any:
        """A chain of comparisons."""
        name, right, *more = rest
        value = right()
        found = _COMPARE[name](left, value)
        return self.and_(found, lambda: self.compare(value, *more)) if more else found

    def either(self, what: str, test: Any, then: Thunk, orelse: Thunk) -> Any:
        """The value of one of two expressions."""
        place = locate(here())
        site = Site(what, place.line if place is not None else 0, ())
        exit, how = decide(
            site,
            self.label(site),
            test,
            lambda: Exit.by(RETURN, then()),
            lambda: Exit.by(RETURN, orelse()),
            Cells(site),
            self.lost(site),
        )
        self.note(site, how)
        return exit.value

    def plain(self, test: Any, why: str) -> Any:
        """A test that stays Python's: what is traced is refused."""
        if is_traced(test):
            raise ControlError(
                f"a traced {test.type} is tested by Python, since {why}",
                where=describe(here()),
                fix="write np.where or tn.cond, or a statement of its own",
            )
        return test

    def callee(self, function: Any) -> Any:
        """A function that is called: one of the user's is converted as well."""
        return function if current() is None else self.converted(function)

    def refused(self, site: Site, why: str, fix: str) -> ControlError:
        return ControlError(
            f"the {site.kind} of line {site.line} {why}", where=describe(here()), fix=fix
        )


def _deciding() -> bool:
    """Whether what is traced runs only if the program decides so."""
    scope = current()
    return scope is not None and any(s.taken_over is not None for s in scope.chain(None))


def _written(site: Site, body: FunctionType) -> tuple[Any, ...]:
    """The traced arrays whose elements a body assigns, as far as its names tell."""
    held = _variables(body)
    found: list[Any] = [held.get(name) for name in sorted(site.written)]
    roots = [a._view.root if a._view is not None else a for a in found if is_traced(a)]
    return tuple({id(a): a for a in roots}.values())


def _variables(part: FunctionType) -> dict[str, Any]:
    """The variables that a part uses, and what they are."""
    cells = map(content, part.__closure__ or ())
    return dict(zip(part.__code__.co_freevars, cells, strict=True))


def _remedy(site: Site, name: str, why: str) -> str:
    if "only" in why:
        return f"give {name} a value before the {site.kind}"
    if site.kind == "if":
        return f"give {name} the same dtype and shape on both sides: cast with .astype"
    return f"start {name} with the dtype and shape that a round gives it, or cast in the loop"
