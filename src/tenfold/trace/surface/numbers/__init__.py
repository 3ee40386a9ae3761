"""NumPy's functions of single numbers that are no ufuncs of one op."""
