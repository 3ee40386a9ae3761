"""Tenfold: a compiler and runtime for array programs in Python."""
