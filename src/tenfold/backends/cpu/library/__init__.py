"""Routines that are no kernels: products by BLAS, sorts of our own."""
