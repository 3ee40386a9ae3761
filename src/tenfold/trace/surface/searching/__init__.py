"""NumPy's searching and sorting."""
