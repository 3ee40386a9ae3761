"""Callbacks in a check: they run once, in the reference's run; the plan is answered from memory."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from tenfold.frozen import frozen
from tenfold.graph.op import HostRequest
from tenfold.reference import Callbacks


@frozen
class HostAnswer:
    """What was asked for, and the answer."""

    name: str
    answers: tuple[Any, ...]


def _name(ask: HostRequest) -> str:
    return f"{ask.op} {ask.attributes.get('name') or ask.attributes.get('label') or ''}".strip()


@frozen
class RecordingCallbacks(Callbacks):
    """Callbacks that are called, their answers kept."""

    asked: list[HostAnswer] = field(default_factory=list)

    @staticmethod
    def of(callbacks: Callbacks) -> RecordingCallbacks:
        return RecordingCallbacks(callbacks.defaults, callbacks.overrides)

    def answer(self, ask: HostRequest) -> list[Any]:
        answers = Callbacks.answer(self, ask)
        self.asked.append(HostAnswer(_name(ask), tuple(np.array(a) for a in answers)))
        return answers


@frozen
class ReplayingCallbacks(Callbacks):
    """Answers from memory, in the order in which they were asked for.

    Where the reference did not come to its end, what lies beyond it is called. `wrong` says where
    something else was asked for.
    """

    asked: tuple[HostAnswer, ...] = ()
    ended: bool = True
    given: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @staticmethod
    def of(recorded: RecordingCallbacks, ended: bool) -> ReplayingCallbacks:
        return ReplayingCallbacks(
            recorded.defaults, recorded.overrides, tuple(recorded.asked), ended
        )

    def answer(self, ask: HostRequest) -> list[Any]:
        at, name = len(self.given), _name(ask)
        self.given.append(name)
        if at >= len(self.asked):
            if not self.ended:
                return Callbacks.answer(self, ask)
            self.wrong.append(f"{name} is asked for after the last callback of the reference")
            raise CallbackMismatch
        if self.asked[at].name != name:
            self.wrong.append(f"callback {at} is {name}, the reference's {self.asked[at].name}")
            raise CallbackMismatch
        ask.arguments.clear()
        return [np.array(answer) for answer in self.asked[at].answers]

    def left(self) -> str:
        """What the plan did not ask for, or nothing."""
        if self.wrong:
            return self.wrong[0]
        if self.ended and len(self.given) < len(self.asked):
            return (
                f"callback {len(self.given)}, {self.asked[len(self.given)].name}, is not asked for"
            )
        return ""


class CallbackMismatch(Exception):
    """The plan asks for other callbacks than the reference."""


__all__ = ["CallbackMismatch", "HostAnswer", "RecordingCallbacks", "ReplayingCallbacks"]
