"""The public face: jit, tracing, running, the namespace.

Whoever imports a part of it has NumPy's functions known to traced arrays, and graphs run as the
policy says.
"""

from tenfold.api import policy
from tenfold.trace import surface

__all__ = ["policy", "surface"]
