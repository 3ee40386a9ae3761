"""Routines that are no kernels: products by BLAS, linear algebra by LAPACK, Fourier transforms by
NumPy's own code, sorts of our own."""
