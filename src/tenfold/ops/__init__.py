"""The op table: one row for each op, and everything about the op in its row.

>>> from tenfold.ops import TABLE
>>> TABLE["floordiv"].edges
'integers: by zero gives 0, INT_MIN by -1 gives INT_MIN; floats as NumPy'

To add an op, write its row where its kind stands; nothing else is to be touched, and no file
outside the table asks for an op by name. Most kinds have a `row` function that asks only for what
differs:

    row("add", 2, np.add, "biufc", edges="integers wrap; bool: or")

What rows are made of: type rules in `rules`, attributes in `attributes`, what references share
in `reference`, formulas of compositions in `expression`, element generators in `elements`, how
inputs are read in `reads`, ranges in `ranges`, batching rules and guards of ops that may raise in
`batching`, what a compiled result may be off by and what errors make of it in `agreement`, and what
tests draw in `samples`. The tests walk the table: they find a new row by themselves and name what
it lacks. Where rows stand, and that a program imports few of them, says `table`.
"""

from tenfold.ops.table import TABLE

__all__ = ["TABLE"]
