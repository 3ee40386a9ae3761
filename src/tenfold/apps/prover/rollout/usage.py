"""Usage: which room a rollout's searches were given, and what they took of memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Capacity:
    """The room of one call, and the bytes of its arrays; in several threads, of all of them."""

    successors: int
    goals: int  # of a state
    variables: int  # of a state
    steps: int | None  # of a lane, where it goes one way
    states: int | None  # of all lanes, where these keep every state
    lanes: int
    threads: int
    nbytes: int


@dataclass(slots=True)
class Usage:
    """What was used: how many candidates were searched for in each room. Filled while it runs."""

    memory: int | None = None  # the limit
    rooms: dict[Capacity, int] = field(default_factory=dict)
    lost: int = 0  # candidates whose room would have passed the limit

    def note(self, room: Capacity, candidates: int) -> None:
        """So many candidates are searched for in a room."""
        self.rooms[room] = self.rooms.get(room, 0) + candidates

    @property
    def nbytes(self) -> int:
        """The most bytes of arrays at once."""
        return max((room.nbytes for room in self.rooms), default=0)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for a file."""
        rooms = [{**asdict(room), "candidates": n} for room, n in self.rooms.items()]
        return {"memory": self.memory, "bytes": self.nbytes, "lost": self.lost, "rooms": rooms}

    def lines(self) -> Iterator[str]:
        """What to say of it: the largest of each, and what was lost."""
        if not self.rooms:
            return
        named = ("successors", "goals", "variables", "steps", "states", "lanes")
        most = {name: max(getattr(room, name) or 0 for room in self.rooms) for name in named}
        said = ", ".join(f"{count:,} {name}" for name, count in most.items() if count)
        yield f"Room, at most: {said}; arrays of {megabytes(self.nbytes)}."


def megabytes(count: int) -> str:
    """Bytes for a reader.

    >>> megabytes(3 << 20), megabytes(5 << 30)
    ('3.0 MiB', '5.0 GiB')
    """
    size, unit = (1 << 30, "GiB") if count >= 1 << 30 else (1 << 20, "MiB")
    return f"{count / size:.1f} {unit}"
