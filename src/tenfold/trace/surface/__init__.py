"""The surface: what NumPy's functions, ufuncs, operators, methods and indexing do when traced.

Each file files its part in the tables of `tenfold.trace.tables`, and is imported when a program
asks for it (`tenfold.trace.homes`). The methods of arrays are there from the beginning.
"""

from tenfold.trace.surface import methods
from tenfold.trace.surface.ufuncs import ufuncs

__all__ = ["methods", "ufuncs"]
