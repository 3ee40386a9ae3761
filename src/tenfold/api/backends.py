"""What can run here: backends, and what each of them lacks on this machine."""

from __future__ import annotations

import tenfold.backends  # noqa: F401  now: imported later it would take the place of tn.backends


def backends() -> dict[str, dict[str, str]]:
    """The backends of this machine, with how each is reached and what it does without. Code is for
    the machine's own level of instructions, or for the lesser one that TENFOLD_TARGET asks for.

    >>> import tenfold as tn
    >>> sorted(tn.backends()["cpu"])
    ['compiler', 'entry', 'loader', 'products', 'target']
    """
    from tenfold.backends.cpu.entry.ndarray import supported
    from tenfold.backends.cpu.library.blas import blas, why_not
    from tenfold.backends.cpu.link.loader import route
    from tenfold.backends.cpu.target import VARIABLE, host_target, llvmlite_version, machine

    missing = supported()
    library = blas()
    target, best = host_target(), machine()
    why = "the best of this machine"
    if target != best:
        why = f"as {VARIABLE} asks; the best of this machine is {best.cpu}"
    return {
        "reference": {"entry": "the evaluator, in NumPy"},
        "cpu": {
            "target": f"{target.cpu} ({target.triple}), {why}",
            "compiler": f"llvmlite {llvmlite_version() or 'not installed'}",
            "loader": str(route()),
            "entry": "native" if missing is None else f"ctypes, because {missing}",
            "products": "OpenBLAS, one thread" if library else f"on the host, because {why_not()}",
        },
    }
