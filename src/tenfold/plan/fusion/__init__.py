"""Fusion: which nodes become one kernel.

A group grows as long as its nodes share one space of axes: any number of ops, inputs and outputs.
How a node reads its inputs is found by asking its `element` generator once with symbolic axes
(`plan/fusion/access`), so fusion works for every op alike. A group is split where two reductions
need incomparable spaces, a reduction crosses a transpose, a reduction's result is needed by the
whole space, too many streams meet, rows are read at positions that take some work to find, or
what runs along inner axes alone, or is read through a reshape, would be computed again and again.
What was not fused, and why, is in the plan's notes and in `plan.explain()`.

A scatter begins as a copy of its operand, in place where that dies, and a kernel of its own
writes into it: the axes of the indices run in order, so equal indices are met in the order of the
updates and sums have the reference's bits; windows lie along parallel axes. It takes in what is
computed for it alone. Where no window lies across lanes, the lanes compute values and positions
side by side and store one after another; where all of them update one place, as along a sorted
index, it is read and written once. Sixteen-bit floats are joined as f32, by casts around the
scatter.

A group is written down as a form before it is lowered: its nodes, types, attributes and accesses
with scalar literals left open. Equal forms are lowered once, so 400 unrolled steps cost the code
generation of one. What a form reads stands in the order of first use, not in that of the program,
so that the first step of an unrolled loop and the later ones give equal kernels.
"""
