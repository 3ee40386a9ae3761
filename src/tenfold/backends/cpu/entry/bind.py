"""Make a callable of a plan in memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tenfold.backends.cpu.entry import ndarray as nd
from tenfold.backends.cpu.entry.abi import Argument, CallSpec
from tenfold.backends.cpu.entry.kept_memory import keep_memory
from tenfold.backends.cpu.entry.record import POOL_SLOTS, RECORD_WORDS, WRITES, RecordWord
from tenfold.backends.cpu.entry.slots import hash_of
from tenfold.backends.cpu.link.loader import Image, load, process_symbol
from tenfold.backends.guard import KINDS, Guard, kind_of
from tenfold.errors import ValueProblem
from tenfold.frozen import frozen
from tenfold.locks import Lock
from tenfold.types import DTYPES, SHORT, TensorType

Array = np.ndarray[Any, Any]

_FASTCALL_KEYWORDS = 0x80 | 0x02

_NEVER = 1 << 62
_POOL = range(RecordWord.POOL, RecordWord.POOL + POOL_SLOTS)

GATE_EXPORTS = (
    "tn_gate", "tn_dispatch", "tn_run",
    "tn_kept", "tn_kept_shrink", "tn_kept_age", "tn_handler", "tn_handler_name",
)  # fmt: skip
_gates: list[Image] = []
_making = Lock()


def gate(code: Callable[[], bytes]) -> Image:
    """The gate of this process. `code` makes its object code, or finds it in a cache.

    Compiled at LLVM's level 0 it takes a fifth of the time, and 2 ns more an argument.
    """
    if not _gates:
        with _making:
            if not _gates:
                image = load([code()], GATE_EXPORTS, nd.symbols())
                keep_memory(image)
                _gates.append(image)
    return _gates[0]


class MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class NativeBinding(str):
    """What a callable is bound to: the plan's record, captured arrays, guards, code in memory.

    The callable holds it in place of its module's name, hence a string: `call.__module__` reads as
    usual, and Python's collector sees all that hangs on it.
    """

    entry: CallSpec
    method: MethodDef
    held: tuple[Any, ...]  # the captured arrays, then the guards
    _kept: tuple[object, ...]  # what has to live as long as the callable
    _record: Array
    _free: Callable[[int], None]

    def __new__(
        cls,
        entry: CallSpec,
        plan: int,
        given: int,
        slow: Callable[..., Any],
        captures: Sequence[Array],
        guards: Sequence[Guard],
        *kept: object,
    ) -> NativeBinding:
        block = _pack_bound(entry, captures, guards)
        words = [0] * RECORD_WORDS
        for argument in entry.arguments:
            words += _argument_words(argument)
        outputs_at = len(words)
        for type in entry.own:
            words += (id(DTYPES[SHORT[type.dtype]]), type.rank, type.nbytes, *type.shape)
        updates_at = len(words)
        offsets, arena_bytes = entry.offsets
        for number, offset in zip(entry.updates, offsets, strict=True):
            words += (number, entry.arguments[number].type.nbytes, offset)
        words[RecordWord.PLAN] = plan
        words[RecordWord.GIVEN] = given
        words[RecordWord.RELEASE] = int(entry.release)
        words[RecordWord.SLOW] = id(slow)
        words[RecordWord.BOUND] = data_of(block)
        words[RecordWord.ARGUMENTS] = len(entry.arguments)
        words[RecordWord.OUTPUTS] = len(entry.own)
        words[RecordWord.UPDATES] = len(entry.updates)
        words[RecordWord.GUARDS] = len(entry.guards)
        words[RecordWord.CAPTURES] = entry.captures
        words[RecordWord.TABLE] = entry.table_size
        words[RecordWord.ARENA] = arena_bytes
        words[RecordWord.ANSWER] = entry.gives
        written = sum([argument.writeable for argument in entry.arguments])
        words[RecordWord.WRITES] = entry.writes + (0 < written == len(entry.updates))
        self = super().__new__(cls, "tenfold")
        words[RecordWord.OWNER] = id(self)
        record = np.array(words, np.uint64)
        start = data_of(record)
        record[RecordWord.ARGUMENTS_AT] = start + 8 * RECORD_WORDS
        record[RecordWord.OUTPUTS_AT] = start + 8 * outputs_at
        record[RecordWord.UPDATES_AT] = start + 8 * updates_at
        self.entry = entry
        self.held = (*captures, *guards)
        self._kept = (slow, block, *kept)
        self._record = record
        self._free = _free()
        return self

    @property
    def address(self) -> int:
        """Where the record lies."""
        return data_of(self._record)

    @property
    def hash(self) -> int:
        """What `tn_hash` finds for its arguments."""
        return hash_of(self.entry.arguments)

    @property
    def types(self) -> list[TensorType]:
        """Those of the arguments."""
        return [argument.type for argument in self.entry.arguments]

    @property
    def writes(self) -> bool:
        """Whether the plan writes into arguments."""
        return self.entry.writes

    @property
    def answered(self) -> int:
        """How many calls were answered."""
        return int(self._record[RecordWord.ANSWERED])

    def close(self) -> None:
        """Turn every call away until it is opened again."""
        self._record[RecordWord.ARGUMENTS] = _NEVER  # nobody gives as many

    def open(self) -> None:
        self._record[RecordWord.ARGUMENTS] = len(self.entry.arguments)

    def hand(self, given: int, kept: object) -> None:
        """Call the plan's function with something else from now on."""
        self._kept = (*self._kept, kept)  # calls under way have the former
        self._record[RecordWord.GIVEN] = given  # an aligned word: written in one step

    def __del__(self, slots: range = _POOL) -> None:  # bound now: at the end names are gone
        """Free the arenas that wait in the pool."""
        for slot in slots:
            arena = int(self._record[slot])
            if arena:
                self._record[slot] = 0
                self._free(arena)


def data_of(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def guard_words(guards: Sequence[Guard]) -> list[int]:
    """Guards as the gate reads them."""
    words = list[int]()
    for guard in guards:
        where, key, expected = guard
        words += (KINDS.index(kind_of(guard)), id(where), id(key), id(expected))
    return words


def _pack_bound(entry: CallSpec, captures: Sequence[Array], guards: Sequence[Guard]) -> Array:
    """Guards, the captures' data, and the sizes of what must lie apart."""
    if len(captures) != entry.captures or len(guards) != len(entry.guards):
        raise ValueProblem(
            f"{entry.name}: {len(captures)} captures and {len(guards)} guards given, "
            f"{entry.captures} and {len(entry.guards)} wanted"
        )
    words = guard_words(guards)
    for array in captures:
        if not (array.flags.c_contiguous and array.flags.aligned):
            raise ValueProblem(f"{entry.name}: a captured array is not contiguous; copy it")
        words.append(data_of(array))
    if entry.writes:
        for argument in entry.arguments:
            words.append(argument.type.nbytes | (WRITES if argument.writeable else 0))
        words += (array.nbytes for array in captures)
    return np.array(words, np.uint64)


def _argument_words(argument: Argument) -> tuple[int, ...]:
    type = argument.type
    flags = nd.CONTIGUOUS | nd.ALIGNED | (nd.WRITEABLE if argument.writeable else 0)
    # A NumPy scalar may stand for an array of no axes: plans hand scalars out, so they get them.
    scalar = id(type.dtype.type) if type.rank == 0 and not argument.writeable else 0
    return id(DTYPES[SHORT[type.dtype]]), scalar, flags | type.rank << 32, *type.shape


@cache
def _free() -> Callable[[int], None]:
    address = process_symbol("free")
    assert address is not None
    return ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(address)


@cache
def _new_function() -> Callable[[int, Any, Any], Any]:
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return kind(("PyCFunction_NewEx", ctypes.pythonapi))


@cache
def _new_capsule() -> Callable[[int, None, None], Any]:
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return kind(("PyCapsule_New", ctypes.pythonapi))


@frozen
class BoundPlan:
    """A callable over a plan in memory. `reason` says why it is not native, None when it is."""

    call: Callable[..., Any]
    binding: NativeBinding
    reason: str | None


def make_entry(
    entry: CallSpec,
    image: Image,
    gate: Image,
    slow: Callable[..., Any],
    captures: Sequence[Array] = (),
    guards: Sequence[Guard] = (),
    native: bool = True,
    given: int = 0,
    kept: object = None,
) -> BoundPlan:
    """A callable for the plan in `image`, whose function is called with `given`. `slow` answers
    whatever the guards turn away; `kept` lives as long as the callable."""
    plan = image.address(entry.plan)
    binding = NativeBinding(entry, plan, given, slow, captures, guards, image, gate, kept)
    reason = nd.supported() if native else "it was not asked for"
    if reason is not None:
        from tenfold.backends.cpu.entry.by_ctypes import make_by_ctypes

        return BoundPlan(make_by_ctypes(entry, plan, given, gate, slow, binding), binding, reason)
    name, address = entry.name.encode(), gate.address("tn_gate")
    call, binding.method = make_builtin(name, address, binding.address, binding)
    return BoundPlan(call, binding, None)


def make_builtin(
    name: bytes, address: int, record: int, owner: str
) -> tuple[Callable[..., Any], MethodDef]:
    """A callable that is a built-in of CPython's: native code at this address, given a capsule
    around a record. It keeps its owner, which has to keep the method."""
    method = MethodDef(name, address, _FASTCALL_KEYWORDS, None)
    capsule = _new_capsule()(record, None, None)
    return _new_function()(ctypes.addressof(method), capsule, owner), method
