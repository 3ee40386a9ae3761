"""Tracing: from a Python function to a graph.

- `Array` is a mutable handle on a value. `x += v` and `x[i] = v` move the handle, so aliases see
  it. A view knows its root and the steps from there (`view`, `surface/steps`): it is read anew when
  the root has moved on, and what is written to it moves the root. Views that NumPy makes read-only
  (broadcasts, diagonals) are not written, nor those in which an element stands at several places.
- A traced array that is no view lies in C order, and a view as NumPy would lay it: so a reshape is
  a view or a copy as there. `order="K"` and `"A"` of a `ravel` are refused where they matter.
- An argument may be updated: what became of it is an output of the graph after the function's own
  (`FunctionTrace.updates`), and is written into the caller's array when the call ends
  (`api/call/updates`). Returned whole, it is the caller's object. A scalar is bound anew instead.
- Python numbers are weak: they take the dtype of the array they meet. A Python number given as an
  argument stays weak inside the function, and comes back as a Python number.
- A Python number put into an array (`x[i] = v`, `fill`, `insert`, `initial=`) goes in as NumPy
  puts it there, or is refused as there: 300 into uint8, NaN into integers, 1j into floats.
  Arguments are looked at in each call. Where NumPy itself cuts such a number without a word
  (`np.full`, `np.pad`, `np.where`), it is refused too. Arrays are cast, as the column of edges
  says.
- Promotion asks NumPy (`ufunc.resolve_dtypes`) and keeps the answer. One difference: with
  bfloat16, Python numbers take bfloat16, where NumPy gives float32.
- Source lines are taken as a code object and an offset, and resolved when the graph is finished.
- Arrays of subclasses that compute in their own way (masked arrays, matrices, any that overrides
  what NumPy's arrays do) are refused as arguments, captures and operands (`types.base_array`);
  native code takes exact arrays alone. Memory maps and arrays with fields added are taken.
- 0-d results come back as NumPy scalars, as NumPy's own do.
"""
