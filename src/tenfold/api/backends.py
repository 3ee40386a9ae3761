"""What can run here: backends, and what each of them lacks on this machine."""

from __future__ import annotations

import tenfold.backends  # noqa: F401  now: imported later it would take the place of tn.backends


def backends() -> dict[str, dict[str, str]]:
    """The backends of this machine, with how each is reached and what it does without. Code is for
    the machine's own level of instructions, or for the lesser one that TENFOLD_TARGET asks for.

    >>> import tenfold as tn
    >>> sorted(tn.backends()["cpu"])
    ['compiler', 'entry', 'loader', 'products', 'target', 'threads']
    """
    from tenfold.backends.registry import backend_names, backend_record

    found = {"reference": {"entry": "the evaluator, in NumPy"}}
    for name in backend_names():
        record = backend_record(name)
        why = record.missing()
        found[name] = dict(record.describe()) if why is None else {"missing": why}
    return found
