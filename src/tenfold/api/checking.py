"""Answer calls by plans that are checked: at first within a bounded time, then on and on until
nothing is left.

The check of a first call takes about as long as making the plan did. What is left goes on in the
background on a copy of the arguments; where that can't be, because they are large or Python is
called, later calls go on with it, the second, the fourth, the eighth and so on. Until then the plan
answers, its certificate being partial; in strict mode the reference does. A plan that is refuted
later is taken out of use, and the next call says how many it had answered. A plan of which only the
sizes are new answers before its first check (`parity/wiring`).

A process that finds a plan on disk with a partial certificate goes on with the check, too. It has
to import the planner and the check for that, which takes longer than many processes live on after
their answer, and would then be for nothing; so it is begun by those that do live on for a moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from tenfold.backends.guard import Guard
from tenfold.backends.program import Program
from tenfold.cache import keep_verdict
from tenfold.cache.disk import log
from tenfold.errors import ParityError, ParityWarning
from tenfold.frames import kept_warnings, warn
from tenfold.graph import Graph
from tenfold.parity.certificate import Certificate
from tenfold.promote.background import held, submit, waited_for, waiting
from tenfold.reference import Callbacks, evaluate
from tenfold.stats import count

if TYPE_CHECKING:
    from tenfold.parity.verdict import Disagreement

Array = np.ndarray[Any, Any]

LEAST, MOST = 0.03, 0.1  # seconds of a first call's check
MORE = 0.3  # of a later call's that goes on with one, at the least
COPIED = 1 << 28  # bytes of arguments that are copied for the background, of all programs
OWN = 1 << 26  # and of one: a call waits for the copy, half a millisecond a megabyte
TRIED = 1 << 22  # bytes of arguments from which a call that is checked does not try the entry, too
WAITING = 32  # programs that wait for the background at most
# Seconds without such a call after which checks behind answers are begun: where plans come one
# after another, and where a process has found what another left.
QUIET, SETTLED = 0.02, 0.2

_FIX = "tn.bisect(f, *args) writes a script that shows it"


def answer(
    program: Program,
    graph: Graph,
    arrays: Sequence[Array],
    callbacks: Callbacks,
    verify: str | float,
    strict: bool,
    *,
    quiet: bool = False,
) -> list[Array]:
    """The outputs for these arrays: by the plan as far as it may answer, else by the reference.
    With `quiet` a refutation is the caller's to tell."""
    if program.failed is not None:
        _tell_failed(program)
    if program.refuted is not None:
        tell(program, strict)
        return evaluate(graph, list(arrays), callbacks)
    if program.certificate is None and verify == "first" and not strict:
        _certify_by_wiring(program, graph)
    if verify == "always" or (verify != "off" and _due(program, strict)):
        return _checked(program, graph, arrays, callbacks, verify, strict, quiet)
    if strict and verify != "off" and not program.certificate.complete:
        return evaluate(graph, list(arrays), callbacks)
    return program(arrays, callbacks)


def _certify_by_wiring(program: Program, graph: Graph) -> None:
    """Let a plan answer of which only the sizes are new, before its own check (`parity/wiring`)."""
    from tenfold.parity.wiring import certificate_by_wiring

    found = certificate_by_wiring(program, graph)
    if found is not None:
        count("known_wirings")
        program.certificate = found


def settled(program: Program, strict: bool) -> bool:
    """Whether native code may answer by itself: no call is wanted for a check, at least not the
    next one, and none has to be answered by the reference."""
    found = program.certificate
    if program.shut:
        return False
    if found is None or found.complete or (program.alone and not strict):
        return True
    return program.leases and not strict and _lease(program)


def _lease(program: Program) -> bool:
    """Have native code answer until a call is due again to go on with the check."""
    if not program.lease:
        due = 1 << max(program.turns.bit_length(), 1)
        program.lease = due - 1 - program.turns or None
        program.turns += program.lease or 0
    return program.lease is not None


def _due(program: Program, strict: bool) -> bool:
    """Whether this call is to be checked, or to go on with a check."""
    if program.certificate is None:
        return True
    if not strict and program.checking is not None and not program.checking.done.is_set():
        return False  # one check at a time: what this call comes to may be what that one judges
    if program.reached:
        # What a check does not come to in its time is looked for less and less often.
        program.rung += 1
        if not strict and program.rung & (program.rung - 1):
            program.reached = False
            program.open()
            return False
        return True
    if program.certificate.complete or program.alone:
        return False
    program.turns += 1  # the first of a process is answered at once, and the background goes on
    return strict or (program.turns > 1 and program.turns & (program.turns - 1) == 0)


def _checked(
    program: Program,
    graph: Graph,
    arrays: Sequence[Array],
    callbacks: Callbacks,
    verify: str | float,
    strict: bool,
    quiet: bool,
) -> list[Array]:
    """The answer to a call that checks the program too."""
    # What only a check needs is imported here: a plan from disk answers without it.
    from tenfold.parity.check import check
    from tenfold.parity.wiring import wirings

    always = verify == "always"
    limit: float | None = min(max(program.seconds, LEAST), MOST)
    if program.certificate is not None:
        # One that goes on takes longer each time, lest it end in the same long item for ever.
        limit = MORE * max(program.turns, 1).bit_length()
    if always or strict:
        limit = None
    elif isinstance(verify, float):
        limit = verify
    before = None if always else program.certificate
    if graph.effects:  # what is called may write to the caller's arrays
        arrays = [np.array(a) if a.flags.writeable else a for a in arrays]
    brief, patience = None if always or strict else limit, 0.0
    if verify == "first" and not strict:
        # A check in brief is worth its time: plans of its wiring answer at once from then on. The
        # second, fourth, eighth one, if those before did not come to their end, is given more.
        turn = wirings.turn(program.wiring) if program.wiring is not None else 1
        patience = MORE * turn.bit_length() if turn > 1 and turn & (turn - 1) == 0 else 0.0
        brief = max(limit or 0.0, MORE, patience)
    count("checks")
    found = check(
        program,
        graph,
        arrays,
        callbacks,
        limit,
        before=before,
        brief=brief,
        patience=patience,
        sampled=verify == "first" and not strict and sum(a.nbytes for a in arrays) > OWN,
    )
    if not isinstance(found.verdict, Certificate):
        refute(program, found.verdict)
        if not quiet:
            tell(program, strict)
        assert found.outputs is not None, "a fault is known only after the reference has ended"
        return found.outputs
    known = program.certificate
    if not always or known is None or (found.verdict.complete and not known.complete):
        _certify(program, found.verdict)
    if strict and not program.certificate.complete:
        _tell_partial(program)
        if found.outputs is not None:
            return found.outputs
    # The plan answers, now as in every later call: the same bits.
    return program(arrays, found.callbacks) if found.made is None else found.made


def _certify(program: Program, found: Certificate) -> None:
    """Take over what a check found, and have calls noted that come to what it did not."""
    if program.refuted is not None:  # by another check meanwhile, which counts
        return
    program.lease = None
    known = program.certificate
    if known is not None and known.complete and not found.complete:
        return  # another check has come to its end meanwhile
    program.certificate = found
    if found.complete and program.wiring is not None:
        from tenfold.parity.wiring import wirings

        wirings.add(program.wiring)
    program.reached = False
    if found.unreached:
        program.watch_for(found.unreached)
    program.open()


def note(program: Program) -> None:
    """Write what checks found to disk, unless it is there: at the end of a call, once. A program
    that is not there yet is written in the background, unless that has enough to do."""
    keep, program.unkept = program.unkept, None
    if keep is None:
        if program.certificate is not program.noted:
            keep_verdict(program)
    elif waiting() <= WAITING:
        found = ref(program)

        def work() -> None:
            kept = found()
            if kept is None:
                return
            with kept_warnings() as said:
                keep(kept)
            for message, _ in said:  # no call waits for this
                log().warning("%s", message)
            keep_verdict(kept)

        submit(work)


def go_on(program: Program, graph: Graph, arrays: Sequence[Array]) -> None:
    """Have what a check left checked in the background, if that can be: to be called when these
    arrays' call is answered."""
    found = program.certificate
    if found is None or found.complete or program.refuted is not None or program.strict:
        return
    busy = program.checking is not None and not program.checking.done.is_set()
    if busy or program.alone or waiting() > WAITING:
        return
    kept = None  # kernels on drawn values need no arguments
    size = sum(a.nbytes for a in arrays)
    if not graph.effects and size <= OWN and size + held() <= COPIED:
        with suppress(MemoryError):
            kept = [np.array(a) for a in arrays]
    if kept is None and not found.undrawn:
        return

    def work() -> None:
        from tenfold.parity.check import check

        before = program.certificate
        found = check(program, graph, kept, before=before, stop=waited_for, brief=inf).verdict
        if not isinstance(found, Certificate):
            refute(program, found)
            return
        _certify(program, found)
        note(program)
        if waited_for() and not found.complete:  # after the fork; at the end nobody does it
            program.checking = submit(work, failed, size)

    def failed(error: BaseException | None) -> None:
        if error is None:  # a fork left it behind: this process's next call goes on
            program.checking, program.alone, program.reached = None, False, True
        program.failed = error
        program.close()  # the next call tells

    size = 0 if kept is None else size
    program.alone = kept is not None
    patient = QUIET if program.known and not found.steps else 0.0
    if not program.seconds:  # it was made by another process
        patient = SETTLED
    program.checking = submit(work, failed, size, patient)


def tried_later(program: Program, arrays: Sequence[Array], updates: Sequence[int]) -> bool:
    """Whether to try the native entry takes as long as another run on copies of these arguments,
    long enough to be left to the call after the one that checks the plan."""
    first = len(program.outputs) - len(updates)
    over = any(program.overwrites(n, o) for o, n in enumerate(updates, first))
    return over and sum(a.nbytes for a in arrays) > TRIED


def guarded(
    program: Program,
    captures: Sequence[Array],
    watched: Sequence[Guard],
    arrays: Sequence[Array],
    updates: Sequence[int],
    strict: bool,
    made: Sequence[Array] | None = None,
) -> bool:
    """Whether the guards of the native entry turn away what they should, and it updates such
    arguments as it should. `made` are the plan's outputs for these arrays, where they are known."""
    from tenfold.parity.replay.guards import try_arguments, try_updates, try_watched

    wiring, entry, found = program.wiring, (len(captures), tuple(updates)), None
    if wiring is not None:
        from tenfold.parity.wiring import wirings

        found = wirings.guards(wiring, entry)
    fault, tried = None, found or 0
    if found is None:
        tried, fault = try_arguments(program, captures, watched, updates)
    fault = fault or try_watched(program, captures, watched, updates)
    fault = fault or try_updates(program, arrays, captures, updates, made)
    if fault is not None:
        refute(program, fault)
        tell(program, strict)
        return False
    if wiring is not None and found is None:
        wirings.note_guards(wiring, entry, tried)
    tried += len(watched)
    if isinstance(program.certificate, Certificate) and program.certificate.guards < tried:
        program.certificate = replace(program.certificate, guards=tried)
    return True


def refute(program: Program, fault: Disagreement) -> None:
    """Take a program out of use, here and on disk."""
    from tenfold.parity.find.bisect import located

    program.refuted = str(fault)  # at once: to look into it takes time, and memory
    program.close()
    if program.wiring is not None:
        from tenfold.parity.wiring import wirings

        wirings.refute(program.wiring)
    answered = program.answered
    with suppress(MemoryError):
        fault = located(fault, program)
    text = str(fault)
    if answered:
        text += f"\n  it had answered {answered} calls before this was found"
    program.refuted = text
    keep_verdict(program)


def _tell_failed(program: Program) -> None:
    """Say that a check in the background came to no verdict, and let native code answer again."""
    error, program.failed = program.failed, None
    program.open()
    warn(
        f"the check of the compiled program failed, it stays partial: {error!r}",
        ParityWarning,
    )


def _tell_partial(program: Program) -> None:
    """Say in strict mode that a plan does not answer yet, once."""
    if program.told:
        return
    program.told = True
    left = "; ".join(program.certificate.left)
    warn(
        f"the check of the compiled program is partial, the reference answers in its place: {left}",
        ParityWarning,
    )


def tell(program: Program, strict: bool) -> None:
    """Say that a program was refuted: a warning at the user's line, once in a process, or an
    error. Another process may have found it."""
    if strict:
        raise refused(program)
    if program.told:
        return
    program.told = True
    warn(
        f"the compiled program disagrees with the reference, which answers in its place: "
        f"{program.refuted}\n  {_FIX}",
        ParityWarning,
    )


def refused(program: Program) -> ParityError:
    """The error of a program that was refuted."""
    return ParityError(
        f"the compiled program disagrees with the reference: {program.refuted}",
        fix=_FIX,
    )
