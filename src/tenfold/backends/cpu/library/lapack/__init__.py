"""Routines of linear algebra: matrices are copied to LAPACK's order and factored by the private
OpenBLAS, as NumPy does with its own. So results have NumPy's signs and order."""
