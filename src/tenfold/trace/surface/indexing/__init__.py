"""NumPy's indexing, and the functions that read and write by index."""
