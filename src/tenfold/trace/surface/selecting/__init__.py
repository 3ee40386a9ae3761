"""Selections: x[mask] with a mask that only a running program knows.

How many elements `x[mask]` chooses, only a running program knows where the mask is traced. What
does not need the number works: sums, means, extremes, medians, norms and the like, over all axes or
some; elementwise functions, of selections by one mask and of what broadcasts without their axis;
products; `x[mask] = v`, also of another selection by that mask or of just as many values;
`x[mask] += v`; `x[mask].size`; single elements; the places that `np.nonzero` gives, as indices. It
is done on the whole array, and what is not chosen is left out where it would count. A greatest of
nothing, or another number of values than are chosen, is an error of the running program. What needs
the number to go on (shapes, joining, sorting) is an error that names the line of `x[mask]`;
`tn.compress` and `tn.nonzero` take a `size=`. A function that returns `x[mask]` gives as many
elements as the mask of that run chose.
"""
