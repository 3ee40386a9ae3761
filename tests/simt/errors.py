"""What goes wrong: in the text, or in what a thread does."""

from __future__ import annotations

from dataclasses import dataclass


class SimtError(Exception):
    """Any error of the interpreter."""


class IRProblem(SimtError):
    """Text that is not understood, or asks for what is not supported."""


class LaunchProblem(SimtError):
    """A launch that a device would refuse, or misuse of the simulated memory by the host."""


class Fault(SimtError):
    """A thread does what has no defined result; the message names line, thread and address."""


class OutOfBounds(Fault):
    """An access outside every allocation."""


class Misaligned(Fault):
    """An access at an address that its alignment does not divide."""


class Undefined(Fault):
    """Undefined behaviour, poison that matters, or bytes that nobody has written."""


class Race(Fault):
    """Accesses of two threads to one byte that nothing orders."""


class Divergence(Fault):
    """Threads that should be at one barrier, or one shuffle, are not."""


class Deadlock(Fault):
    """All threads wait."""


class StepLimit(Fault):
    """More steps than were allowed."""


class Inexact(Fault):
    """An instruction whose bits only the hardware knows."""


@dataclass(frozen=True)
class Site:
    """Where an instruction stands."""

    function: str
    line: int  # from 1
    text: str

    def __str__(self) -> str:
        return f"@{self.function}, line {self.line}: {self.text}"

    def problem(self, message: str) -> IRProblem:
        return IRProblem(f"{message}\n  in {self}")
