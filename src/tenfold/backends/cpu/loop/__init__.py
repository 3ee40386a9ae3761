"""A loop of a plan as one native function.

The interpreter of plans takes some 20 ns a step, which is most of the time where a round computes a
few numbers. Such a loop (`plan/steps/loops` has the rule) is written down as one function: loops
and branches are native control flow, the kernels of its rounds are put in place, and each slot of
up to 256 bytes that is not the caller's is memory on the stack that LLVM turns into registers. So
carries live in registers, captures of up to 64 bytes are read once, and an array that is updated in
place stays where it is.

    walk     the steps of a loop, with all below it, as text with kernels left open, and what the
             function is given: addresses of slots, numbers, parameters (`writer` collects both)
    inline   a kernel as text to be put in place
    text     the whole text of a loop's function, named by itself
    compile  its object code, from memory, disk or LLVM

The function is called as a kernel is, by the same words of bytecode. Its text holds no size that
can differ without its structure: lengths, offsets and strides are numbers that the caller gives, so
another length is another row of numbers and the same code. Kernels that check (an index in range)
have their fault looked into where it happens, with the tables of the plan that the step is of.

The kernels are those that the interpreter calls, by the same schedule, so both ways give the same
bits; a plan's check runs the loop by its function.
"""

LAYOUT = 1  # of what a function is given; another number where that changes
