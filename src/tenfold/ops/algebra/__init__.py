"""Rows of products, solvers, transforms and convolutions."""
