"""Backends by name. The one line that lists them is here; each is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from tenfold.backends.backend import Backend
from tenfold.errors import Unsupported

DEFAULT = "cpu"
_MODULES = {"cpu": "tenfold.backends.cpu.backend"}  # each has its record as BACKEND
_records: dict[str, Backend] = {}


def register(backend: Backend) -> None:
    """Have a backend found by its name."""
    _records[backend.name] = backend


def backend_names() -> tuple[str, ...]:
    """The names of all backends, those that can't be used here too."""
    return tuple(dict.fromkeys((*_MODULES, *_records)))


def backend_record(name: str) -> Backend:
    """The record of a backend, whether it can be used here or not."""
    found = _records.get(name)
    if found is None:
        found = import_module(_MODULES[name]).BACKEND
        register(found)
    return found


def backend_named(name: str | None = None) -> Backend:
    """A backend that can be used here; the default one without a name.

    >>> backend_named("abacus")
    Traceback (most recent call last):
    tenfold.errors.Unsupported: there is no backend 'abacus'
      there are: cpu
    """
    chosen, names = name or DEFAULT, backend_names()
    if chosen not in names:
        raise Unsupported(f"there is no backend {name!r}", fix=f"there are: {_listed(names)}")
    found = backend_record(chosen)
    why = found.missing()
    if why is not None:
        raise Unsupported(
            f"the backend {chosen!r} can't be used here: {why}", fix=f"there are: {_listed(names)}"
        )
    return found


def _listed(names: tuple[str, ...]) -> str:
    """The names, each with why it can't be used here."""
    reasons = [(name, backend_record(name).missing()) for name in names]
    return ", ".join(name if why is None else f"{name} (not here: {why})" for name, why in reasons)
