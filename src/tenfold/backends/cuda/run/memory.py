"""Where the values of a plan lie on a device while it runs."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.frozen import frozen
from tenfold.plan import Plan
from tenfold.plan.steps.plan import ARENA, CONSTANT, INPUT

Address = int


@frozen(eq=False)
class DeviceFrame:
    """One run of a plan, or of a plan below: the addresses of its inputs and outputs, of its arena
    and of its constants."""

    plan: Plan
    inputs: Sequence[Address]
    outputs: Sequence[Address]
    arena: Address
    constants: Sequence[Address]

    def address(self, number: int) -> Address:
        """Where a slot lies."""
        slot = self.plan.slots[number]
        if slot.place == ARENA:
            return self.arena + slot.offset
        if slot.place == CONSTANT:
            return self.constants[slot.number] + slot.offset
        places = self.inputs if slot.place == INPUT else self.outputs
        return places[slot.number] + slot.offset
