"""NumPy's functions that make, join, pad and reshape arrays."""
