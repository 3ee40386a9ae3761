"""The certificate of a plan: what was checked, when, on what, and how well it agreed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from tenfold.errors import FileError
from tenfold.frozen import frozen

VERSION = 2


@frozen
class StepRecord:
    """One step of a plan, over all the times it was checked.

    `plan` counts the plans from the innermost. `ulp` is the largest error in units in the last
    place of the reference's values.
    """

    plan: int
    step: int
    what: str
    times: int
    ulp: float
    ties: int


@frozen
class LoopRecord:
    """A loop: how many rounds the reference went, and how many of them were checked."""

    name: str
    rounds: int
    checked: int


@frozen
class Certificate:
    """That a plan agrees with the reference, as far as it was checked.

    `left` says what is still to be checked, empty where nothing is. `end_to_end` is the largest
    error of each output of the whole plan, in ulp, empty before that was judged.
    """

    graph: str
    target: str
    inputs: tuple[str, ...]  # the types of the arguments
    inputs_digest: str
    kernels: tuple[str, ...]  # those that were judged on drawn values
    undrawn: int  # how many were not yet
    steps: tuple[StepRecord, ...]
    loops: tuple[LoopRecord, ...]
    near_ties: tuple[str, ...]
    checked: int  # checks of steps
    left: tuple[str, ...]
    unreached: tuple[int, ...]  # plans that the arguments do not lead to, with steps that are left
    notes: tuple[str, ...]  # steps that were judged in part, or with the whole plan
    whole: bool  # whether the outputs of the whole plan were judged
    end_to_end: tuple[float, ...]
    versions: tuple[tuple[str, str], ...]
    date: str
    seconds: float
    guards: int = 0  # violations that the native entry was seen to turn away

    @property
    def complete(self) -> bool:
        """Whether nothing is left to be checked."""
        return not self.left

    @property
    def state(self) -> str:
        """`whole`, or `partial` while something is left to be checked."""
        return "partial" if self.left else "whole"

    @property
    def done(self) -> frozenset[tuple[int, int]]:
        """The steps that were checked: of which plan, and which."""
        return frozenset((step.plan, step.step) for step in self.steps)

    @property
    def ulp(self) -> float:
        """The largest error of any step."""
        return max((step.ulp for step in self.steps), default=0.0)

    def to_data(self) -> dict[str, Any]:
        """The certificate as plain data."""
        return {"version": VERSION, **asdict(self)}

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> Certificate:
        """The certificate that `to_data` wrote down; lists may stand for tuples."""
        try:
            given = dict(data)
            if given.pop("version") != VERSION:
                raise FileError("a certificate of another version", fix="check the plan again")
            given["steps"] = tuple(StepRecord(**_known(StepRecord, s)) for s in given["steps"])
            given["loops"] = tuple(LoopRecord(**_known(LoopRecord, s)) for s in given["loops"])
            for name in (
                "inputs",
                "kernels",
                "near_ties",
                "left",
                "unreached",
                "notes",
                "end_to_end",
            ):
                given[name] = tuple(given[name])
            given["versions"] = tuple((str(a), str(b)) for a, b in given["versions"])
            return Certificate(**given)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FileError(f"a damaged certificate: {error}") from error

    def __str__(self) -> str:
        worst = max(self.steps, key=lambda s: s.ulp, default=None)
        lines = [
            f"certificate of {self.graph[:12]} on {self.target}, {self.date}: {self.state}",
            f"  inputs ({', '.join(self.inputs)}), {self.inputs_digest[:12]}",
            f"  {len(self.kernels)} kernels on drawn values, {self.checked} checks of "
            f"{len(self.steps)} steps in {self.seconds:.2f} s"
            + (f"; {self.guards} guards tried" if self.guards else ""),
        ]
        if worst is not None:
            lines.append(f"  largest error {worst.ulp:.3g} ulp, in {worst.what}")
        lines += [
            f"  loop {loop.name}: {loop.checked} of {loop.rounds} rounds checked"
            for loop in self.loops
        ]
        if self.end_to_end:
            lines.append(f"  end to end {', '.join(f'{e:.3g}' for e in self.end_to_end)} ulp")
        lines += [f"  near-tie: {tie}" for tie in self.near_ties]
        lines += [f"  {note}" for note in self.notes]
        lines += [f"  left: {what}" for what in self.left] or ["  nothing left to be checked"]
        lines.append("  with " + ", ".join(f"{name} {number}" for name, number in self.versions))
        return "\n".join(lines)


def verdict_to_data(certificate: Certificate | None, refuted: str | None) -> dict[str, Any]:
    """What is known of a plan, as plain data: its certificate, or why it was refuted."""
    return {
        "certificate": None if certificate is None else certificate.to_data(),
        "refuted": refuted,
    }


def verdict_from_data(data: Mapping[str, Any]) -> tuple[Certificate | None, str | None]:
    """The certificate and the refutation that `verdict_to_data` wrote down."""
    found, refuted = data.get("certificate"), data.get("refuted")
    if refuted is not None and not isinstance(refuted, str):
        raise FileError("a damaged certificate: the refutation is no text")
    return None if found is None else Certificate.from_data(found), refuted


def _known(kind: Any, data: Mapping[str, Any]) -> dict[str, Any]:
    return {f.name: data[f.name] for f in fields(kind)}
