"""Chance: a random number drawn while tracing would be the same in every call, so it is an error.

States of the generators at hand are compared around a trace. A generator made inside without a
seed asks NumPy for entropy, which is refused while this thread traces.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from ctypes import string_at
from typing import Any

from tenfold.errors import TraceError
from tenfold.trace.scope import current
from tenfold.trace.source import describe, here

FIX = "draw the numbers outside and pass them in, or use tn.random with a key as an argument"


def drawn(what: str, label: str, functions: Iterable[Any]) -> TraceError:
    """The error of random numbers that were drawn while a function was traced; these functions may
    have drawn them."""
    from tenfold.trace.draws import draws

    found = next(draws(functions), None)
    return TraceError(
        f"{what} moved while {label} was traced; the numbers drawn would be the same in every call",
        where=found.where if found else None,
        fix=found.fix if found else FIX,
    )


@contextmanager
def by_no_chance(label: str, function: Any) -> Generator[None]:
    """TraceError if a random number is drawn inside."""
    numpy, python = _numpy_state(), _python_state()
    _refuse_unseeded()
    yield
    if _numpy_moved(numpy):
        raise drawn("NumPy's global random state", label, [function])
    if python is not None and _python_state() != python:
        raise drawn("the random state of Python's random module", label, [function])


def state_of(generator: Any) -> Any:
    """The state of a generator, to be compared; None where it has none, as the system's has."""
    if hasattr(generator, "getstate"):
        try:
            return generator.getstate()
        except NotImplementedError:
            return None
    if hasattr(generator, "get_state"):
        return _comparable(generator.get_state(legacy=False))
    return _comparable(getattr(generator, "bit_generator", generator).state)


def _comparable(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: _comparable(value) for key, value in state.items()}
    return state.tobytes() if hasattr(state, "tobytes") else state


def _python_state() -> Any:
    """The state of Python's random module, if anyone has loaded it. Python makes a number of each
    word, so the words are looked at where they lie: in the object, behind what all objects have."""
    # Another thread may be importing it: then it has nothing yet.
    state = getattr(sys.modules.get("random"), "getstate", None)
    if state is None:
        return None
    generator: Any = getattr(state, "__self__", None)
    kind: Any = type(generator)
    if kind.__module__ != "random" or kind.__name__ != "Random":
        return state()
    head, whole = object.__basicsize__, kind.__base__.__basicsize__
    return string_at(id(generator) + head, whole - head), generator.gauss_next


_TWISTER = 625 * 4  # bytes of a Mersenne Twister: 624 words, then how many of them were drawn
_even: tuple[int, bytes] | None = None  # where one lay, and its bytes, while it held nothing back


def _numpy_state() -> Any:
    """NumPy's global random state, if anyone has loaded it.

    NumPy takes 60 µs to give it, word by word, so a Mersenne Twister is looked at where it lies.
    Normal numbers are drawn in pairs, and one that is held back does not lie there: whether there
    is one NumPy is asked, once for each state.
    """
    global _even
    module: Any = sys.modules.get("numpy.random")
    ask = getattr(module, "get_state", None)
    if ask is None:
        return None
    generator = module.get_bit_generator()
    if type(generator) is not module.MT19937:
        return _comparable(ask(legacy=False))
    address = generator.ctypes.state_address
    found = address, string_at(address, _TWISTER)
    if found == _even:
        return found
    state = ask(legacy=False)
    if state["has_gauss"]:
        return *found, state["gauss"]
    _even = found
    return found


def _numpy_moved(before: Any) -> bool:
    now = _numpy_state()
    if before is None and now is not None:  # loaded meanwhile: fresh until the first draw
        return _even is None or int.from_bytes(_even[1][-4:], sys.byteorder) < 623
    return bool(now != before)


_entropy: Callable[[int], int] | None = None


def _refuse_unseeded() -> None:
    """Stand before NumPy's source of entropy, for good: it is asked once for each generator."""
    global _entropy
    module: Any = sys.modules.get("numpy.random.bit_generator")
    found = getattr(module, "randbits", _seed)
    if found is not _seed:
        _entropy = found
        module.randbits = _seed


def _seed(bits: int) -> int:
    """Entropy for a generator, but none for a thread that traces: an error at its line."""
    if current() is not None:
        raise TraceError(
            "a generator of random numbers is made without a seed while tracing; the numbers it "
            "draws would be the same in every call",
            fix=FIX,
            where=describe(here()),
        )
    assert _entropy is not None
    return _entropy(bits)
