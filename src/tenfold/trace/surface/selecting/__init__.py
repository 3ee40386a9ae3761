"""Selections: x[mask] with a mask that only a running program knows.

How many elements it chooses is known only then. What does not need the number is done on the whole
array, and what is not chosen is left out where it would count: elementwise functions, reductions,
products, assignments, places. What needs it is an error that names the line of x[mask].
"""
