"""NumPy's products, solvers, transforms and polynomials."""
