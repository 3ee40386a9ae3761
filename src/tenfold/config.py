"""Settings of this process: `tn.config`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any

from tenfold.errors import ValueProblem
from tenfold.frozen import mutable

if TYPE_CHECKING:
    from pathlib import Path

_OFF = ("", "0", "off", "no", "none")
GIB = 1 << 30
MODES = ("auto", "always", "never")
TRACEBACKS = ("short", "full")


def _folder() -> str | None:
    given = os.environ.get("TENFOLD_CACHE")
    if given is not None:
        return None if given.lower() in _OFF else os.path.expanduser(given)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if home.startswith("~"):  # there is no home
        return None
    return os.path.join(home, "tenfold", "plans")


def _bytes(variable: str, default: int) -> int:
    given = os.environ.get(variable, "")
    try:
        return int(given) if given else default
    except ValueError:
        raise ValueProblem(
            f"{variable}={given!r} is no number of bytes", fix="give a whole number"
        ) from None


def _threads() -> int | None:
    given = os.environ.get("TENFOLD_THREADS", "")
    if given and not (given.isdecimal() and int(given)):
        raise ValueProblem(
            f"TENFOLD_THREADS={given!r} is no number of threads", fix="give a whole number from 1"
        )
    return int(given) if given else None


def _one_of(variable: str, choices: tuple[str, ...]) -> str:
    given = os.environ.get(variable) or choices[0]
    if given not in choices:
        raise ValueProblem(f"{variable} is {given!r}", fix=f"set it to one of {', '.join(choices)}")
    return given


def _disabled() -> bool:
    return os.environ.get("TENFOLD_DISABLE", "").lower() not in _OFF


_CHOICES = {"compile": MODES, "traceback": TRACEBACKS}


@mutable
class Config:
    """`cache` is the folder of the disk cache, None or 'off' for none; `cache_bytes` how large it
    may grow.

    Of graphs of lazy arrays, `compile` says which are compiled: 'always' all, at once; 'never'
    none; 'auto' those in which at least `compile_work` elements are computed on the way and not
    kept, in the background when they are run for the `compile_runs`-th time. Until such a plan is
    made and checked, and for all other graphs, NumPy's functions run node by node. At most
    `pending` nodes wait for a value before they are run. An operation on arrays at hand that have
    at most `direct` elements, and so has its result, waits for nothing: it is run when it is
    called, unless all are compiled.

    `disable` has functions run as they are written, for a debugger: a jitted one calls what it
    wraps, and branches and bodies are called by Python. `traceback` is 'short' or 'full', with the
    frames of Tenfold's own.

    `threads` is how many threads a plan may run on, the caller's among them; None is as many as
    this process has processors, by its affinity and the quota of its control group. Results do not
    depend on it.

    `kept_bytes` is how much memory of large results that were freed is kept for later ones, 0 for
    none. `tn.stats()` says how much there is now, `tn.release_memory()` gives it back.

    The environment sets some at first: TENFOLD_CACHE (a folder, or 'off'), TENFOLD_CACHE_BYTES,
    TENFOLD_COMPILE, TENFOLD_DISABLE (1), TENFOLD_TRACEBACK, TENFOLD_THREADS, TENFOLD_KEPT_BYTES. Of
    the environment alone: TENFOLD_TARGET asks for code for a lesser level of the processor, as
    'x86-64-v3'; TENFOLD_CUBLAS, TENFOLD_CUFFT and TENFOLD_CUSOLVER are the files of libraries
    that are used on a GPU, or 'off'. See `tn.backends()`.

    >>> config.pending
    1024
    >>> config.compile = "sometimes"
    Traceback (most recent call last):
        ...
    tenfold.errors.ValueProblem: compile is 'sometimes'
      give one of auto, always, never
    """

    cache: Path | str | None = field(default_factory=_folder)
    cache_bytes: int = field(default_factory=lambda: _bytes("TENFOLD_CACHE_BYTES", GIB))
    compile: str = field(default_factory=lambda: _one_of("TENFOLD_COMPILE", MODES))
    compile_runs: int = 4
    compile_work: int = 1 << 17
    pending: int = 1024
    direct: int = 1 << 14
    disable: bool = field(default_factory=_disabled)
    traceback: str = field(default_factory=lambda: _one_of("TENFOLD_TRACEBACK", TRACEBACKS))
    threads: int | None = field(default_factory=_threads)
    kept_bytes: int = field(default_factory=lambda: _bytes("TENFOLD_KEPT_BYTES", GIB // 4))

    def __setattr__(self, name: str, value: Any) -> None:
        choices = _CHOICES.get(name)
        if choices is not None and value not in choices:
            raise ValueProblem(f"{name} is {value!r}", fix=f"give one of {', '.join(choices)}")
        if name == "disable" and not isinstance(value, bool):
            raise ValueProblem(f"disable is {value!r}", fix="give True or False")
        if name == "threads" and value is not None and (type(value) is not int or value < 1):
            raise ValueProblem(f"threads is {value!r}", fix="give a whole number from 1, or None")
        if name == "kept_bytes" and (type(value) is not int or not 0 <= value < 1 << 62):
            raise ValueProblem(
                f"kept_bytes is {value!r}", fix="give a whole number of bytes, 0 for none"
            )
        if name == "cache" and isinstance(value, str):  # as the environment's
            value = None if value.lower() in _OFF else os.path.expanduser(value)
        object.__setattr__(self, name, value)
        if name == "disable":
            for tell in on_disable:
                tell(value)
        if name == "threads":
            for tell in on_threads:
                tell(value)
        if name == "kept_bytes":
            for tell in on_kept_bytes:
                tell(value)


on_disable: list[Callable[[bool], None]] = []  # told of each change of `disable`
on_threads: list[Callable[[int | None], None]] = []  # and of `threads`
on_kept_bytes: list[Callable[[int], None]] = []  # and of `kept_bytes`
config = Config()
