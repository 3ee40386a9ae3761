"""Backends by name. The one line that lists them is here; each is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from tenfold.backends.backend import Backend
from tenfold.errors import Unsupported

DEFAULT = "cpu"
EXACT = "exact"  # how functions are computed where nothing else is asked for
_MODULES = {  # each has its record as BACKEND
    "cpu": "tenfold.backends.cpu.backend",
    "cuda": "tenfold.backends.cuda.backend",
    "webgpu": "tenfold.backends.webgpu.backend",
}
_records: dict[str, Backend] = {}


def register(backend: Backend) -> None:
    """Have a backend found by its name."""
    _records[backend.name] = backend


def backend_names() -> tuple[str, ...]:
    """The names of all backends, those that can't be used here too."""
    return tuple(dict.fromkeys((*_MODULES, *_records)))


def variant_name(name: str | None, device: str | None, maths: str = EXACT) -> str | None:
    """The name of a backend's variant: on a device or for a target, functions computed in a way.

    >>> variant_name("cuda", "sm_90", "fast"), variant_name(None, None)
    ('cuda:sm_90+fast', None)
    """
    if device is None and maths == EXACT:
        return name
    base = name or DEFAULT
    if device is not None:
        if ":" in base:
            raise Unsupported(
                f"the backend {base!r} names a device already, and target={device!r} another",
                fix=f"give backend={base.partition(':')[0]!r}",
            )
        base += f":{device}"
    return base if maths == EXACT else f"{base}+{maths}"


def _parts(name: str) -> tuple[str, str, str]:
    """A name taken apart: the backend, a device, and how functions are computed."""
    front, _, maths = name.partition("+")
    base, _, device = front.partition(":")
    return base, device, maths or EXACT


def backend_record(name: str) -> Backend:
    """The record of a backend, whether it can be used here or not."""
    found = _records.get(name)
    if found is not None:
        return found
    base, device, maths = _parts(name)
    names = backend_names()
    if base not in names:
        raise Unsupported(f"there is no backend {name!r}", fix=f"there are: {_listed(names)}")
    if base == name:
        made: Backend = import_module(_MODULES[name]).BACKEND
        register(made)
        return made
    record = backend_record(base)
    if record.variant is not None:
        return record.variant(device, maths)
    records = [backend_record(n) for n in backend_names()]
    if device:
        others = ", ".join(r.name for r in records if r.variant is not None)
        raise Unsupported(
            f"the backend {base!r} has no {device!r}: it is this machine's",
            fix="leave it out; f.plan(...).save(path, targets=...) makes code for others, and "
            f"devices and targets are there with: {others}",
        )
    others = ", ".join(r.name for r in records if maths in r.maths) or "none has"
    raise Unsupported(
        f"the backend {base!r} has no maths={maths!r}: there is one way to compute",
        fix=f"leave maths out, or give a backend that has it: {others}",
    )


def backend_named(name: str | None = None, *, used: bool = True) -> Backend:
    """A backend that can be used here; the default one without a name. A name may have a device
    behind it (`cuda:1`), or what plans are made for (`cuda:sm_90`). Where it is not `used` yet, no
    library need be loaded to tell: a process may fork after that.

    >>> backend_named("abacus")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tenfold.errors.Unsupported: there is no backend 'abacus'
      there are: cpu, cuda...
    """
    chosen, names = name or DEFAULT, backend_names()
    found = backend_record(chosen)
    why = (found.missing if used else found.uninstalled or found.missing)()
    if why is not None:
        raise Unsupported(
            f"the backend {chosen!r} can't be used here: {why}",
            fix=found.remedy() or f"there are: {_listed(names)}",
        )
    return found


def _listed(names: tuple[str, ...]) -> str:
    """The names, each with why it can't be used here."""
    reasons = [(name, backend_record(name).missing()) for name in names]
    return ", ".join(name if why is None else f"{name} (not here: {why})" for name, why in reasons)
