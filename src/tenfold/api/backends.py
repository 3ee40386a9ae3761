"""What can run here: backends, what each of them lacks on this machine, the memory they keep."""

from __future__ import annotations

import tenfold.backends  # noqa: F401  now: imported later it would take the place of tn.backends


def backends(*names: str) -> dict[str, dict[str, str]]:
    """The backends of this machine, or those that are named, with how each is reached and what it
    does without. Code is for the machine's own level of instructions, or for the lesser one that
    TENFOLD_TARGET asks for. Of one that can't be used it says what is missing and what to do.
    Devices are opened for it: of one backend alone where it is named (`"cpu"`, `"cuda:1"`).

    >>> import tenfold as tn
    >>> sorted(tn.backends()["cpu"])
    ['compiler', 'entry', 'loader', 'memory', 'products', 'target', 'threads']
    """
    from tenfold.backends.registry import backend_names, backend_record

    found = {} if names else {"reference": {"entry": "the evaluator, in NumPy"}}
    for name in names or backend_names():
        record = backend_record(name)
        why = record.missing()
        said = record.describe() if why is None else {"missing": why, **record.absent()}
        found[name] = dict(said)
    return found


def release_memory() -> int:
    """Give the memory that is kept of large results back to the system; how many bytes that was.
    Results that are still held are not touched.

    >>> import numpy as np, tenfold as tn
    >>> y = tn.jit(lambda x: x + 1)(np.zeros(1 << 20))
    >>> del y
    >>> bytes_given_back = tn.release_memory()
    >>> tn.stats()["memory_kept"]
    0
    """
    from tenfold.backends.registry import backend_names, backend_record

    return sum(backend_record(name).release() for name in backend_names())
