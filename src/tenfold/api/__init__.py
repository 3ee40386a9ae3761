"""The public face: jit, tracing, running, the namespace."""
