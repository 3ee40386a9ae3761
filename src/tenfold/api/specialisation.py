"""What jit keeps of a function: its options, and its specialisations with the arrays they closed
over."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.api.call.arguments import as_array
from tenfold.api.captures.places import Dependency, Place
from tenfold.api.verify import verify_option
from tenfold.errors import Unsupported, ValueProblem
from tenfold.frozen import frozen, mutable
from tenfold.promote.background import Job
from tenfold.trace.array import Array
from tenfold.trace.function import FunctionTrace
from tenfold.trace.surface.emit import is_traced

if TYPE_CHECKING:
    from tenfold.api.call.entry_point import EntryPoint
    from tenfold.backends.backend import Backend


@mutable
class CapturedArray:
    """A captured array: where it lives, which array was there last, and the copy taken of it."""

    name: str
    places: list[Place]  # none: made while tracing, never looked for again
    array: Any  # NumPy's, or a lazy one
    snapshot: np.ndarray[Any, Any]

    @staticmethod
    def take(name: str, places: list[Place], array: Any) -> CapturedArray:
        return CapturedArray(name, places, array, snapshot_of(array))

    def fits(self) -> bool:
        """Whether what lives there now is of the type that was traced; takes it if it is new."""
        if not self.places:
            return True
        now = self.places[0].look()
        if any(place.look() is not now for place in self.places[1:]):
            return False  # one array was at all these places
        if isinstance(now, Array):
            if is_traced(now):
                return False
            if now is self.array and now._host() is self.snapshot:
                return True
        elif now is self.array:
            return True
        elif not isinstance(now, np.ndarray):
            return False
        if now.dtype != self.snapshot.dtype or now.shape != self.snapshot.shape:
            return False
        self.array, self.snapshot = now, snapshot_of(now)
        return True


def snapshot_of(array: Any) -> np.ndarray[Any, Any]:
    if isinstance(array, Array):
        return array._host()  # which nobody can write to
    copy = np.array(as_array(array), order="C")
    copy.flags.writeable = False
    return copy


@frozen
class Padding:
    """That fewer rows may be padded to those of a trace: where its outputs have rows, and the
    settings that the trace of fewer rows found."""

    axes: tuple[int | None, ...]
    watched: list[Dependency]

    def fits(self) -> bool:
        return all(w.holds() for w in self.watched)


@mutable(weak=True)
class Specialisation:
    """A function traced for a signature: its graph, and what has to hold for it to serve again."""

    traced: FunctionTrace
    captures: list[CapturedArray]
    watched: list[Dependency]
    unguarded: list[tuple[Place, Any]]
    entry_point: EntryPoint | None = None
    job: Job | None = None  # compiling or checking in the background
    answered: int = 1  # calls by native code, when that was last asked; the first is no use
    paddings: dict[int, Padding] = field(default_factory=dict)  # by numbers of rows

    def fits(self) -> bool:
        return all(w.holds() for w in self.watched) and all(c.fits() for c in self.captures)

    def was_used(self) -> bool:
        """Whether native code has answered calls by it since this was asked last."""
        before = self.answered
        self.answered = self.entry_point.program.answered if self.entry_point else 0
        return self.answered > before

    def captured(self) -> list[np.ndarray[Any, Any]]:
        """The captured arrays as they were last taken."""
        return [c.snapshot for c in self.captures]

    def stands(self) -> bool:
        """Whether the arrays that were taken last are there now, and all else holds."""
        return all(w.holds() for w in self.watched) and all(
            place.look() is one.array for one in self.captures for place in one.places
        )


@frozen
class Options:
    """How a function is traced and compiled."""

    static: Any = ()
    donate: Any = ()
    compile: str = "now"
    strict: bool = False
    verify: Any = None  # None: as TENFOLD_VERIFY says
    buckets: Any = None
    backend: str | None = None  # None: the default one
    control: str | None = None  # "convert": control flow may test traced values
    maths: str = "exact"  # or "fast": by a device's own functions
    target: str | None = None  # what plans are made for, where that is not this machine
    keep: bool = False  # whether results stay on the device
    fallback: str = "cpu"  # or "error": what the backend can't do is refused

    @property
    def chosen(self) -> str | None:
        """The name of the backend, with all that these options say of it."""
        if self.target is None and self.maths == "exact":
            return self.backend
        from tenfold.backends.registry import variant_name

        return variant_name(self.backend, self.target, self.maths)

    def _check_keep(self, found: Backend | None) -> None:
        if self.keep and (found is None or found.put is None):
            raise Unsupported(
                "jit: keep=True, and this backend has no memory of its own that results could "
                "stay in",
                fix="leave keep out, or give the backend of a device: backend='cuda'",
            )

    def __post_init__(self) -> None:
        verify_option(self.verify)
        if self.maths not in ("exact", "fast"):
            raise ValueProblem(
                f"jit: maths={self.maths!r} is no way to compute functions",
                fix="give 'exact', the bits of every backend, or 'fast', a device's own functions",
            )
        if self.fallback not in ("cpu", "error"):
            raise ValueProblem(
                f"jit: fallback={self.fallback!r} is no way to treat what a backend can't do",
                fix="give 'cpu', which has it done on the CPU, or 'error', which refuses it",
            )
        if self.fallback == "error" and self.compile != "now":
            raise ValueProblem(
                f"jit: fallback='error', and by compile={self.compile!r} the evaluator answers",
                fix="leave one of them out",
            )
        chosen = self.chosen
        if chosen is not None:
            from tenfold.backends.registry import backend_named  # a trace does without

            self._check_keep(backend_named(chosen, used=False))
        elif self.keep:
            self._check_keep(None)
        if self.control not in (None, "convert"):
            raise ValueProblem(
                f"jit: control={self.control!r} is no way to treat control flow",
                fix="give 'convert', or leave it out",
            )
        if self.compile not in ("now", "background", "never"):
            raise ValueProblem(
                f"jit: compile={self.compile!r} is no way to compile",
                fix="give 'now', 'background' or 'never'",
            )
