"""The ABI of a plan: what it looks like to Python, and to the native code that calls it.

A plan is one native function,

    i32 plan(ptr table, ptr arena, ptr poll, ptr given)

- `table`: pointers to elements: the arguments', then the captures', then the outputs', in the order
  of `CallSpec`. Arguments are C-contiguous, aligned and of exactly the stated type; outputs are
  fresh; what the plan writes into shares no memory with any other row.
- `arena`: `arena_bytes` of memory aligned to 64 bytes, not cleared, this call's alone; null when
  `arena_bytes` is 0. Behind it lie updates.
- `poll`: what `tn_poll` wants on the back edges of loops (see `poll`).
- `given`: what tells this plan from others that share the function: the address of its
  bytecode.
- The answer: DONE; FAILED, a Python exception is set in this thread and is to propagate; DECLINED,
  or any other number, Python is to answer this call: the slow path gets the same arguments.

`bind.make_entry` makes a callable of it. The GIL is held while it runs unless `release` is set.
"""

from __future__ import annotations

from tenfold.backends.program import given_by
from tenfold.frozen import frozen
from tenfold.types import TensorType

DONE, FAILED, DECLINED = 0, 1, 2
STOPPED = -1  # what a kernel answers that a poll made stop

PARAM_BYTES = 16  # that a kernel's parameter takes, whatever its dtype
STACK_ARENA = 8192  # an arena up to this size lies on the stack
ARENA_ALIGNMENT = 64
IN_PLACE = (1 << 64) - 1  # no offset in an arena: where the argument lies


@frozen
class Argument:
    """One positional argument. `writeable`: it is written into, by the plan or after it."""

    type: TensorType
    writeable: bool = False


@frozen
class CallSpec:
    """How a plan is called.

    `plan` is the symbol of its function, `name` what the callable is called. `guards` has the kind
    of each guard (see `watch`). `updates` are arguments that the plan's last outputs are written
    into when all else is done; those in `over` the plan itself writes. `answer` is what the call
    gives; None is the one output, or a tuple of them. `release`: other Python threads run
    meanwhile; for plans of more than some 10 µs.
    """

    name: str
    plan: str
    arguments: tuple[Argument, ...]
    outputs: tuple[TensorType, ...]
    captures: int = 0
    guards: tuple[str, ...] = ()
    arena_bytes: int = 0
    updates: tuple[int, ...] = ()
    over: tuple[int, ...] = ()
    answer: int | None = None
    release: bool = False

    @property
    def table_size(self) -> int:
        return len(self.arguments) + self.captures + len(self.outputs)

    @property
    def writes(self) -> bool:
        """Whether arguments are written into."""
        return any(argument.writeable for argument in self.arguments)

    @property
    def gives(self) -> int:
        """What the call gives."""
        return given_by(self.answer, len(self.own))

    @property
    def own(self) -> tuple[TensorType, ...]:
        """The outputs that are results."""
        return self.outputs[: len(self.outputs) - len(self.updates)]

    @property
    def offsets(self) -> tuple[list[int], int]:
        """Where in the arena each update is made, and the bytes of the arena with them all."""
        found, end = [], self.arena_bytes
        for number in self.updates:
            if number in self.over:
                found.append(IN_PLACE)
                continue
            end = (end + ARENA_ALIGNMENT - 1) // ARENA_ALIGNMENT * ARENA_ALIGNMENT
            found.append(end)
            end += self.arguments[number].type.nbytes
        return found, end
