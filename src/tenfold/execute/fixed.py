"""Object code of the texts that are the same for every plan: the gate, the steps, their caller, and
the sorts, each by the name of its function.

Found in memory, then in a store (the disk cache sets itself here), then compiled.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Protocol

from tenfold.backends.cpu.bind import GATE_TEXT
from tenfold.backends.cpu.entry import PARAM_BYTES
from tenfold.backends.cpu.gate import GATE_EXPORTS
from tenfold.backends.cpu.sorting import sort_text
from tenfold.backends.cpu.steps import PLAN_TEXT, STEPS_TEXT
from tenfold.backends.cpu.target import Target

GATE, STEPS, CALLER = "gate", "steps", "caller"
TEXTS = {GATE: GATE_TEXT, STEPS: STEPS_TEXT, CALLER: PLAN_TEXT}

EXPORTS: dict[str, tuple[str, ...]] = {
    GATE: GATE_EXPORTS,
    STEPS: ("tn_steps",),
    CALLER: ("tn_plan", "tn_code"),
}


class Store(Protocol):
    """Where object code is kept beyond this process."""

    def find(self, name: str) -> bytes | None: ...
    def keep(self, name: str, data: bytes) -> None: ...


stores: list[Store] = []
_objects: dict[tuple[str, str], bytes] = {}


@cache
def interface() -> str:
    """The name of how kernels, steps and the gate call each other: code of another does not fit."""
    made = hashlib.sha256(repr((1, PARAM_BYTES, sorted(TEXTS.items()))).encode())
    return made.hexdigest()[:32]


def fixed(part: str, target: Target) -> bytes:
    """The object code of one of the texts."""
    key = (part, target.digest)
    found = _objects.get(key)
    if found is None:
        text = TEXTS[part] if part in TEXTS else sort_text(part)
        mark = interface() if part in TEXTS else hashlib.sha256(text.encode()).hexdigest()[:32]
        name = f"{part}-{mark}-{target.digest}"
        for store in stores:
            found = store.find(name)
            if found is not None:
                break
        else:
            # A hit on disk needs neither of these.
            from tenfold.backends.cpu.compile import assemble
            from tenfold.backends.cpu.prelink import prelink

            found = prelink(assemble(text, target), EXPORTS.get(part, (part,)))
            for store in stores:
                store.keep(name, found)
        _objects[key] = found
    return found


def bring(part: str, target: Target, data: bytes) -> None:
    """Use this object code, from a file that is trusted, unless there is some already."""
    _objects.setdefault((part, target.digest), data)
