"""Rows of special functions, divisors and random bits."""
