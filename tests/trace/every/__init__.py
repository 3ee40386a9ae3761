"""Every function that is traced, beside NumPy's."""
