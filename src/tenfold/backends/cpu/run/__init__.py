"""How a plan runs on the CPU: programs, the code that is kept of them, the bytecode of a plan and
the native interpreter that reads it.

A `Plan` is plain data: slots, steps (kernel, routine, host, copy, loop, branch), outputs,
sub-plans. The blueprint links a plan into native code of its own; here a plan is turned into
bytecode that one native interpreter reads (`backends/cpu/run/steps`). Native code of its own cost
about 1.5 ms a step to compile; bytecode costs none of that, and makes a plan on disk plain data.

- Loops and branches run inside the interpreter; a hook or host step calls back into Python. A loop
  of many short rounds is one native function instead (`backends/cpu/loop`). Rounds of one that
  carries nothing run side by side (`run/rounds`).
- Carries alternate between two slots; outputs alias nothing; a loop of no trips copies.
- Back edges poll, so that Ctrl-C stops a plan within 0.2 s. Long kernels poll too, in the loop
  that is long while each of its trips is short (`backends/cpu/emit/polling`); long products and
  copies are cut into parts with polls between them, and so are the loops of sorts. What a stopped
  plan has written is thrown away.
- A check that fails in a kernel (an index out of range) has the step's nodes run again by the
  evaluator, which raises the error with the user's line.
- Products of matrices go by panels of our own or are the library's, in tiles that the shape alone
  decides, on the threads of the pool (`backends/cpu/library/product`). Small ones are kernels, and
  so are products of vectors, and of a vector with a matrix that is computed for it
  (`ops/algebra/products`).
- Routines are called as kernels are, one function for each dtype whatever the sizes, compiled when
  first needed and kept with the gate and the steps (`backends/cpu/library/routine`). What one
  leaves unsolved, a singular matrix say, the evaluator does, or raises the error with the line.
- Linear algebra is LAPACK's, of the private library, in double precision as NumPy has it
  (`backends/cpu/library/lapack`); Fourier transforms are NumPy's own loops.
- Sorts are of our own (`backends/cpu/library/sort/sort`). Keys are integers that sort as the
  elements do. Lines lie along the last axis: `plan/passes/lines` puts transposes around others.
- All plans share the interpreter; a record holds the address of its plan's bytecode. So a
  plan has no code but its kernels', and these lie in pooled pages (`backends/cpu/link/pages`):
  one mapping of the system's holds the code of hundreds of kernels, one their constants.
- At most 4096 plans are kept in memory, 512 signatures of a function, 64 traces of one signature.
  When a plan is dropped, its entry points are closed, and it is freed, its pages with it, as soon
  as no call is in it: no cycle of references waits for Python's collector. It is made again, or
  read from disk, when it is asked for again.
- What the code generator lacks, and sorts of complex numbers, are host steps, each with its
  reason.
"""
