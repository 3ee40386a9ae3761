"""Clocks: what gives another answer each time, and would be asked once while tracing."""

from __future__ import annotations

import sys
import warnings
from types import FunctionType, ModuleType
from typing import Any

from tenfold.api.captures.captures import Survey
from tenfold.api.captures.reads import Chain, reads_of
from tenfold.errors import TraceWarning

_CLOCKS = {
    "time": "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time "
    "process_time_ns thread_time thread_time_ns localtime gmtime ctime",
    "os": "urandom getrandom",
    "uuid": "uuid1 uuid4",
    "secrets": "token_bytes token_hex token_urlsafe randbits randbelow choice SystemRandom",
    "random": "SystemRandom",
}
_NAMES = {  # of each module: the name there, and in words
    home: [(name, f"{home}.{name}") for name in names.split()] for home, names in _CLOCKS.items()
}
_DATES = ("now", "utcnow", "today")
_MISSING = object()


def warn_of_clocks(found: Survey) -> None:
    """A warning at each line of the walked code that asks a clock or the system for chance."""
    known = {
        id(own[name]): called
        for home, names in _NAMES.items()
        if (module := sys.modules.get(home)) is not None
        for own in [vars(module)]
        for name, called in names
        if name in own
    }
    for function in found.codes.values():
        for chain in reads_of(function.__code__).chains:
            clock = _asked(chain, function, known)
            if clock is not None:
                _warn(clock, chain, function)


def _asked(chain: Chain, function: FunctionType, known: dict[int, str]) -> str | None:
    """The clock that this chain of names stands for, if it does."""
    first, *rest = chain.names
    value = sys.modules.get(first) if chain.module else _named(first, function)
    owner: Any = None
    for name in rest:
        if not isinstance(value, (ModuleType, type)):
            return None
        owner, value = value, getattr(value, name, _MISSING)
    # Another thread may be importing them: then they have nothing yet.
    if isinstance(value, type) and chain.given == 0:
        generator = getattr(sys.modules.get("random"), "Random", None)
        return "random.Random without a seed" if value is generator else known.get(id(value))
    if isinstance(owner, type):
        date = getattr(sys.modules.get("datetime"), "date", None)
        if date is not None and issubclass(owner, date):
            return f"{owner.__qualname__}.{rest[-1]}" if rest[-1] in _DATES else None
    return known.get(id(value))


def _named(name: str, function: FunctionType) -> Any:
    free = function.__code__.co_freevars
    if name in free and function.__closure__:
        try:
            return function.__closure__[free.index(name)].cell_contents
        except ValueError:
            return _MISSING
    return function.__globals__.get(name, _MISSING)


def _warn(clock: str, chain: Chain, function: FunctionType) -> None:
    warnings.warn_explicit(
        f"{chain.code.co_qualname} asks {clock} while it is traced: every call has the answer of "
        "the first\n  ask outside and pass the answer in, or use tn.call_host",
        TraceWarning,
        chain.code.co_filename,
        chain.line,
        registry=function.__globals__.setdefault("__warningregistry__", {}),
    )
