"""Arrays brought to a device, to stay there between calls."""

from __future__ import annotations

from typing import Any

from tenfold.errors import Unsupported
from tenfold.trace.containers import flatten


def device_put(x: Any, device: str) -> Any:
    """An array on a device, "cuda", "cuda:1" or "webgpu", or a container of arrays with each of
    them there. One that lies there is given as it is.

    What it gives has `shape`, `dtype` and `numpy()`; NumPy's functions take it by a copy to the
    host, jitted functions of that backend as it is, and from CUDA's GPUs CuPy, torch and JAX by
    their protocols on the device.

    >>> import numpy as np, tenfold as tn
    >>> tn.device_put(np.ones(3), "cpu")
    Traceback (most recent call last):
    tenfold.errors.Unsupported: the backend 'cpu' has no memory of its own
      NumPy's arrays lie where it computes: pass them as they are
    """
    from tenfold.backends.registry import backend_named

    found = backend_named(device)
    if found.put is None:
        raise Unsupported(
            f"the backend {device!r} has no memory of its own",
            fix="NumPy's arrays lie where it computes: pass them as they are",
        )
    structure, leaves = flatten(x)
    return structure.unflatten([found.put(leaf) for leaf in leaves])
