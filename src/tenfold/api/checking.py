"""Checks in jit: a new plan answers only after it has agreed with the reference."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.backends.cpu.bind import Guard
from tenfold.cache import keep_verdict
from tenfold.errors import ParityError, ParityWarning
from tenfold.execute import Program
from tenfold.graph import Graph
from tenfold.parity.certificate import Certificate
from tenfold.reference import Callbacks

if TYPE_CHECKING:
    from tenfold.parity.verdict import Disagreement

Array = np.ndarray[Any, Any]

_FIX = "tn.bisect(f, *args) writes a script that shows it"


def checked_call(
    program: Program,
    graph: Graph,
    arrays: Sequence[Array],
    callbacks: Callbacks,
    verify: str | float,
    strict: bool,
    *,
    quiet: bool = False,
) -> list[Array]:
    """The answer to a call that checks the program too; the certificate is the caller's to keep,
    and with `quiet` a refutation the caller's to tell."""
    # What only a new plan needs is imported here: a plan from disk answers without it.
    from tenfold.parity.check import LIMIT, check

    limit = verify if isinstance(verify, float) else None if verify == "always" else LIMIT
    found = check(program, graph, arrays, callbacks, limit)
    if isinstance(found.verdict, Certificate):
        if program.certificate is None:
            program.certificate = found.verdict
        # The plan answers, now as in every later call: the same bits.
        return program(arrays, found.callbacks) if found.made is None else found.made
    refute(program, found.verdict)
    if not quiet:
        tell(program, strict)
    assert found.outputs is not None, "a fault is known only after the reference has ended"
    return found.outputs


def guarded(
    program: Program, captures: Sequence[Array], watched: Sequence[Guard], strict: bool
) -> bool:
    """Whether the guards of the native entry turn away what they should."""
    from tenfold.parity.guards import try_guards

    count, fault = try_guards(program, captures, watched)
    if fault is not None:
        refute(program, fault)
        tell(program, strict)
        return False
    if isinstance(program.certificate, Certificate) and program.certificate.guards < count:
        program.certificate = replace(program.certificate, guards=count)
    return True


def refute(program: Program, fault: Disagreement) -> None:
    """Mark a program as refuted, here and on disk."""
    from tenfold.parity.bisect import located

    program.refuted = str(located(fault, strict=program.strict))
    keep_verdict(program)


def tell(program: Program, strict: bool) -> None:
    """Say that a program was refuted: a warning at the user's line, once in a process, or an
    error. Another process may have found it."""
    if strict:
        raise refused(program)
    if program.told:
        return
    program.told = True
    warnings.warn(
        f"the compiled program disagrees with the reference, which answers in its place: "
        f"{program.refuted}\n  {_FIX}",
        ParityWarning,
        stacklevel=_outside(),
    )


def refused(program: Program) -> ParityError:
    """The error of a program that was refuted."""
    return ParityError(
        f"the compiled program disagrees with the reference: {program.refuted}",
        fix=_FIX,
    )


def _outside() -> int:
    """How many frames above a warning's own the user's code stands."""
    frame, level = sys._getframe(1), 1
    own = os.path.dirname(os.path.dirname(__file__)) + os.sep
    while frame is not None and frame.f_code.co_filename.startswith(own):
        if frame.f_back is None:
            break
        frame, level = frame.f_back, level + 1
    return level
