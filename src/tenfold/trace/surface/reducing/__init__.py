"""NumPy's reductions, running folds, statistics and counts."""
