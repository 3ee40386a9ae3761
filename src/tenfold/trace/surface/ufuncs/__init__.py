"""NumPy's ufuncs: which op each is, promotion, comparisons, methods."""
