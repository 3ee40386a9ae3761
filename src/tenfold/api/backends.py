"""What can run here: backends, and what each of them lacks on this machine."""

from __future__ import annotations

import tenfold.backends  # noqa: F401  now: imported later it would take the place of tn.backends


def backends() -> dict[str, dict[str, str]]:
    """The backends of this machine, with how each is reached and what it does without.

    >>> import tenfold as tn
    >>> sorted(tn.backends()["cpu"])
    ['compiler', 'entry', 'loader', 'products', 'target']
    """
    from tenfold.backends.cpu.blas import blas, why_not
    from tenfold.backends.cpu.loader import route
    from tenfold.backends.cpu.ndarray import supported
    from tenfold.backends.cpu.target import host_target, llvmlite_version

    missing = supported()
    library = blas()
    target = host_target()
    return {
        "reference": {"entry": "the evaluator, in NumPy"},
        "cpu": {
            "target": f"{target.cpu} ({target.triple})",
            "compiler": f"llvmlite {llvmlite_version() or 'not installed'}",
            "loader": str(route()),
            "entry": "native" if missing is None else f"ctypes, because {missing}",
            "products": "OpenBLAS, one thread" if library else f"on the host, because {why_not()}",
        },
    }
